// A browser's work: parses HTML into a tree, matches styles, lays text out in lines, changes the
// tree as a script would, and writes it out again. Arguments: page, rounds.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

struct Node {
    std::string name, text; // a text has no name
    std::map<std::string, std::string> attributes;
    std::vector<std::unique_ptr<Node>> children;
    std::shared_ptr<const std::unordered_map<std::string, std::string>> style;
    std::vector<std::string> lines;
    Node *parent = nullptr;

    Node *add(std::unique_ptr<Node> child)
    {
        child->parent = this;
        children.push_back(std::move(child));
        return children.back().get();
    }
};

class Parser {
public:
    explicit Parser(const std::string &page) : page_(page) {}

    std::unique_ptr<Node> tree()
    {
        auto root = std::make_unique<Node>();
        root->name = "document";
        Node *open = root.get();
        while (at_ < page_.size()) {
            if (page_[at_] != '<') {
                auto text = std::make_unique<Node>();
                text->text = until('<');
                open->add(std::move(text));
                continue;
            }
            ++at_;
            std::string tag = until('>');
            ++at_;
            if (tag[0] == '/')
                open = closed(open, tag.substr(1));
            else if (tag[0] != '!')
                open = opened(open, tag);
        }
        return root;
    }

private:
    std::string until(char end)
    {
        std::size_t found = std::min(page_.find(end, at_), page_.size());
        std::string part = page_.substr(at_, found - at_);
        at_ = found;
        return part;
    }

    static Node *closed(Node *open, const std::string &name)
    {
        for (Node *each = open; each->parent; each = each->parent)
            if (each->name == name)
                return each->parent;
        return open;
    }

    static Node *opened(Node *open, const std::string &tag)
    {
        auto element = std::make_unique<Node>();
        std::size_t end = std::min(tag.find(' '), tag.size());
        element->name = tag.substr(0, end);
        while (end < tag.size()) {
            std::size_t equals = tag.find('=', end);
            if (equals == std::string::npos)
                break;
            const std::string key = tag.substr(end + 1, equals - end - 1);
            const char quote = tag[equals + 1];
            const bool is_quoted = quote == '"' || quote == '\'';
            std::size_t begin = equals + 1 + is_quoted;
            end = std::min(tag.find(is_quoted ? quote : ' ', begin), tag.size());
            element->attributes[key] = tag.substr(begin, end - begin);
            end += is_quoted;
        }
        if (element->name == "li" && open->name == "li")
            open = open->parent;
        const bool is_void = element->name == "br";
        Node *added = open->add(std::move(element));
        return is_void ? open : added;
    }

    const std::string &page_;
    std::size_t at_ = 0;
};

using Style = std::unordered_map<std::string, std::string>;

struct Rule {
    std::string tag, of_class;
    Style values;
};

std::vector<Rule> rules()
{
    std::vector<Rule> found;
    const char *tags[] = {"div", "p", "li", "a", "td", "h2", "em", ""};
    for (int number = 0; number < 120; ++number)
        found.push_back({tags[number % 8], number % 3 ? "k" + std::to_string(number % 40) : "",
                         {{"color", "#" + std::to_string(number * 7919 % 1000000)},
                          {"margin-of-" + std::to_string(number % 9), std::to_string(number)}}});
    return found;
}

void style(Node &node, const std::vector<Rule> &all, const Style &inherited)
{
    auto own = std::make_shared<Style>(inherited);
    auto given = node.attributes.find("class");
    for (const Rule &rule : all)
        if ((rule.tag.empty() || rule.tag == node.name) &&
            (rule.of_class.empty() || (given != node.attributes.end() &&
             given->second.find(rule.of_class) != std::string::npos)))
            for (const auto &[key, value] : rule.values)
                (*own)[key] = value;
    node.style = own;
    for (auto &child : node.children)
        if (!child->name.empty())
            style(*child, all, *own);
}

long layout(Node &node, std::size_t width)
{
    node.lines.clear();
    std::string line;
    for (std::size_t at = 0; at < node.text.size();) {
        std::size_t end = std::min(node.text.find(' ', at), node.text.size());
        if (line.size() + end - at > width)
            node.lines.push_back(std::exchange(line, {}));
        line += node.text.substr(at, end - at) + ' ';
        at = end + 1;
    }
    if (!line.empty())
        node.lines.push_back(line);
    long height = static_cast<long>(node.lines.size());
    for (auto &child : node.children)
        height += layout(*child, width);
    return height;
}

void change(Node &node, std::uint64_t &state)
{
    for (auto &child : node.children)
        change(*child, state);
    state = state * 6364136223846793005u + 1442695040888963407u;
    const unsigned draw = static_cast<unsigned>(state >> 40);
    if (node.name == "ul" && draw % 3 == 0) {
        auto item = std::make_unique<Node>();
        item->name = "li";
        item->attributes["class"] = "item k" + std::to_string(draw % 40);
        auto text = std::make_unique<Node>();
        text->text = "added by a script " + std::string(draw % 100, 'y');
        item->add(std::move(text));
        node.add(std::move(item));
    } else if (node.name == "ul" && node.children.size() > 1 && draw % 3 == 1) {
        node.children.erase(node.children.begin() + draw % 2);
    } else if (node.name == "p") {
        node.attributes["data-seen"] = std::to_string(draw);
    }
}

void write(const Node &node, std::string &out)
{
    if (node.name.empty()) {
        for (const std::string &line : node.lines)
            out += line;
        return;
    }
    out += '<' + node.name;
    for (const auto &[key, value] : node.attributes)
        out += ' ' + key + "=\"" + value + '"';
    out += '>';
    for (const auto &child : node.children)
        write(*child, out);
    out += "</" + node.name + '>';
}

int main(int, char **words)
{
    std::ifstream file(words[1]);
    const std::string page(std::istreambuf_iterator<char>(file), {});
    const auto all = rules();
    std::uint64_t state = 1;
    long height = 0;
    std::size_t size = 0;
    for (int round = 0; round < std::atoi(words[2]); ++round) {
        auto tree = Parser(page).tree();
        for (std::size_t width : {80, 40}) {
            style(*tree, all, {});
            height += layout(*tree, width);
            change(*tree, state);
        }
        std::string out;
        write(*tree, out);
        size += out.size();
    }
    std::cout << height << ' ' << size << '\n';
}

// A search engine in small: threads build indexes of a text, one merges them, all answer queries.
// Arguments: text, threads, rounds.
use std::collections::{BTreeMap, HashMap};
use std::sync::{mpsc, Arc};
use std::{env, fs, thread};

type Index = HashMap<String, Vec<(usize, String)>>;

fn index(lines: &[String], first: usize) -> Index {
    let mut found = Index::new();
    for (number, line) in lines.iter().enumerate() {
        for word in line.split_whitespace() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            let before: String = line.chars().take(word.len() % 17).collect();
            found.entry(word).or_default().push((first + number, before));
        }
    }
    found
}

fn answer(all: &BTreeMap<String, Vec<(usize, String)>>, seed: u64, count: usize) -> usize {
    let words: Vec<&String> = all.keys().collect();
    let (mut state, mut total) = (seed, 0);
    for _ in 0..count {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let one = words[(state >> 33) as usize % words.len()];
        let lines: BTreeMap<usize, &str> =
            all[one].iter().map(|(line, before)| (*line, before.as_str())).collect();
        let page: Vec<String> = lines.iter().take(20)
            .map(|(line, before)| format!("<li>{line}: {before} <b>{one}</b></li>")).collect();
        total += page.join("\n").len();
    }
    total
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let threads: usize = words[2].parse().unwrap();
    let rounds: usize = words[3].parse().unwrap();
    let text = fs::read_to_string(&words[1]).unwrap();
    let mut total = 0;
    for round in 0..rounds {
        let lines: Arc<Vec<String>> = Arc::new(text.lines().map(String::from).collect());
        let (sender, receiver) = mpsc::channel();
        let share = lines.len() / (threads * 8) + 1;
        let makers: Vec<_> = (0..threads).map(|maker| {
            let (sender, lines) = (sender.clone(), Arc::clone(&lines));
            thread::spawn(move || {
                for part in (maker..threads * 8).step_by(threads) {
                    let first = (part * share).min(lines.len());
                    let end = (first + share).min(lines.len());
                    sender.send((part, index(&lines[first..end], first))).unwrap();
                }
            })
        }).collect();
        drop(sender);
        let mut parts: Vec<(usize, Index)> = receiver.iter().collect();
        parts.sort_by_key(|(part, _)| *part);
        let mut all = BTreeMap::<String, Vec<(usize, String)>>::new();
        for (_, part) in parts {
            for (word, places) in part {
                all.entry(word).or_default().extend(places);
            }
        }
        makers.into_iter().for_each(|maker| maker.join().unwrap());
        let all = Arc::new(all);
        let readers: Vec<_> = (0..threads).map(|reader| {
            let all = Arc::clone(&all);
            thread::spawn(move || answer(&all, (round * threads + reader) as u64, 1000))
        }).collect();
        total += readers.into_iter().map(|reader| reader.join().unwrap()).sum::<usize>();
    }
    println!("{total}");
}

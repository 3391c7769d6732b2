-- A small shop in memory: loads, indexes, joins, groups, updates, deletes and searches text.
create table article(id integer primary key, name text not null, price real, kind text);
create table sale(id integer primary key, article integer references article, day text, note text);
create table kind_total(kind text primary key, total real, sales integer);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000)
  insert into article select i, printf('article %x', i * 2654435761 % 4294967296),
    i * 7919 % 10007 / 100.0, 'kind ' || i % 97 from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)
  insert into sale select i, i * 2654435761 % 10000 + 1, date(2451545 + i % 1461),
    'note ' || hex(i * 40503 % 65536) || substr('many words of a long remark', 1, i % 28) from n;
commit;
create index sale_article on sale(article);
create index sale_day on sale(day, article);
create trigger counted after update of price on article begin
  insert into kind_total values(new.kind, new.price, 1)
    on conflict(kind) do update set total = total + excluded.total, sales = sales + 1;
end;
update article set price = price * 1.1 where id % 3 = 0;
select kind, count(*), round(sum(price), 2), group_concat(distinct day) from sale
  join article on article.id = sale.article group by kind order by kind limit 5;
select day, count(distinct name), max(length(note)) from sale join article
  on article.id = sale.article group by day order by 2 desc, 1 limit 5;
select count(*) from sale where note like '%word%' and article in
  (select id from article where price > 50);
select json_group_array(json_object('name', name, 'price', price)) from article where id % 701 = 0;
select length(json_extract(json_group_array(json_object('d', day, 'n', note)), '$[777]')) from sale;
delete from sale where article % 13 = 5;
select name, row_number() over (partition by kind order by price desc) from article
  order by 2 desc, 1 limit 5;
select * from kind_total order by total desc, kind limit 5;
pragma integrity_check;

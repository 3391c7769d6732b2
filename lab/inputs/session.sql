set work_mem = '256MB';
select count(*) from (select md5(i::text) from generate_series(1, 400000) i order by md5(i::text) collate "en-x-icu" offset 1) x;
select length(string_agg(md5(i::text), ',')) from generate_series(1, 400000) i;
select count(*) from generate_series(1, 400000) a(i) join (select i, md5(i::text) from generate_series(1, 400000) i) b using (i);
select array_length(array_agg(md5(i::text)), 1) from generate_series(1, 400000) i;
select pg_column_size(jsonb_agg(md5(i::text))) from generate_series(1, 400000) i;
select count(*) from (select md5(i::text) from generate_series(1, 400000) i order by 1 offset 1) x;

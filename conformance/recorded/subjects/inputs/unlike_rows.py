"""What `unlike_rows` asks: expressions over the table of `unlike_values`, and whole queries."""

EXPRESSIONS = """
concat(-1.2345678901234567e-5)
concat(-1.2345678901234567e-10), length(-1.2345678901234567e-10), 1.2345678901234567e-10
concat(db), concat(db / 3e10), if(1, db / 3e10, 'a'), cast(db / 3e10 as char)
concat(fl), concat(cast(1e12 as float)), concat(cast(-1.23456e-5 as float))
concat(pi()), concat(dm / ts), concat(-dm), coalesce(dm, 'a'), if(1, dm, 'a') + 0
greatest('a', ch), greatest(ch, 'a'), least('A', 'a', v9), greatest(v9, 'A'), greatest(vl, _latin1'e')
time(ye), hour(ye), minute(ye), second(ye), microsecond(ye), time_to_sec(ye), extract(hour_minute from ye), extract(day_second from ye)
timediff(ye, ye), time_format(ye, '%T'), addtime(ye, '1:1:1'), subtime('1:1:1', ye)
extract(minute_second from bu), extract(hour from bu), extract(second from 18446744073709551615)
1 between ye and 3000, 1999 between ye and 3000, 70 between 60 and ye, ye between 1 and 70, 1 in (ye, 5), ye in (1, 5), '1' between ye and 3000
concat(date_sub(t3, interval b9 hour)), concat(date_add(t3, interval '1' second)), t3 + interval 1 second, length(addtime(t3, '1'))
cast(addtime(t3, t0) as char), cast(subtime(t3, '1:1:1.5') as binary), concat(timestampadd(second, 1, t3)), if(1, addtime(t3, '1'), 'a')
cast(0.5 as datetime), cast(0.4 as datetime), cast('2024-00-00 00:00:00.5' as datetime), cast(0.125 as datetime(2)), cast(0.5 as datetime(1))
date_add(t3, interval iz second_microsecond), date_add(d0, interval iz second_microsecond), date_add(d0, interval iz + 0 second_microsecond)
greatest(t3, 5) + 0, greatest(time'00:01:20', 130) + 0, least(it, t3) + 0
greatest(it, time'12:30:45') + 0, greatest('10', '9') + 0, greatest(st, t3) + 0
field(vc, 'Ab', vb), field('AB', vc), field(vc, vb, 'Ab'), field(vb, vc), field(vn, 'a')
field(vc, vn)
field(da, x'FF')
field(5, x'FF')
regexp_substr('漢字', vl)
regexp_replace(bn, null, vc), regexp_replace(bb, 5, 'a')
regexp_replace(bb, 'b', 'c')
nullif('12x', bi), nullif('1.5', bi), nullif('é', bu), nullif('12', it), nullif('12', ye), nullif(12, ye), nullif(x'41', bi)
nullif(date'9999-12-31', bi), nullif(20240229, da), nullif('2024-02-29', da), nullif('12', t0), nullif(5.5, t3), nullif(json_array(1), bi)
bit_or(bb)
bit_and(uncompress(compress('abc')))
bit_xor(from_base64('YWJj'))
bit_and(if(1, null, null)), bit_or(case id when 9 then null end), bit_and(null)
cast(date'2024-02-29' as signed) like x'FF'
ifnull(bn, '漢字'), if(1, '漢字', bn), coalesce('漢字', bn), ifnull(vn, '漢字漢字漢字漢字')
coercibility(bl), coercibility(concat(it)), coercibility(trim(it)), coercibility(if(1, it, da)), coercibility(it), coercibility(weight_string(vc))
coercibility(concat(v9, vc)), coercibility(concat(concat(v9, vc), 'a')), coercibility(concat(concat(v9, vc), vc)), collation(concat(concat(v9, vc), vc))
'a' = concat(v9, vc), vc = concat(v9, vc), 'a' in (concat(v9, vc), 'b')
concat(v9, vc) = concat(v9, vc)
'a' in (v9, vc)
'a' between v9 and vc
strcmp(5, concat(v9, vc)), strcmp(5, '[1'), strcmp('5', '[1'), strcmp(1e20, '1E20' collate utf8mb4_0900_ai_ci), strcmp(date'1999-12-31', t0)
truncate(de, '1'), round(de, '1'), truncate(de, '-1'), truncate(de, cast(1 as char))
1 in ('10', '1e2'), 4 in ('4.9', 'x'), 5 in ('50', '5e0'), 1 in ('1e2'), it in ('10', '1e2')
rpad(_binary'ab', 2, vc), insert(x'61', 1, 1, v9), replace(_binary'ab', 'a', vc), lpad(vc, 3, 'x')
date_sub(da, interval date_sub('2024-02-29 12:30:00', interval 1 second) second)
cast(cast(m6 as json) as signed), cast(cast(da as json) as decimal(20, 3)), cast(m6 as json) + 0, cast(vn as json) + 0, left('abcdef', cast(t3 as json))
time(cast(d0 as json)), hour(cast(d0 as json)), time(cast(t3 as json)), hour(cast(t3 as json)), cast(cast(t3 as json) as datetime)
cast(case when 1 then js else js end as unsigned), cast(js as unsigned), cast(if(1, js, js) as signed)
cast(ifnull(js, js) as year), cast(ifnull(bb, 'x') as decimal)
json_value(it, '$.a')
cast('1AAAAAAAAAAA' as time), cast('1AAAAAAAAAA' as time), cast('123456AAAAAA' as time), cast('20240101AAAAAA' as time)
greatest(1, null, timestamp'2024-02-29 12:30:00')
log(-1.25, js), log(ye, null)
json_insert(js, null, (v + 0)), json_insert(null, '$', (v + 0)), json_insert(js, '$[last]', (v + 0))
json_replace(js, '$**.a', json_object(bn, lt))
(vn & vn) + 0
concat(vl, '漢字')
concat(vl, if(id > 1, '漢字', 'a'))
replace(vl, ' 7', '漢字')
replace(_latin1'e', ' 7', '漢字')
replace(vl, 'a', vc)
insert(vl, 1, 1, vc)
lpad(vl, 5, vc)
rpad(vl, 5, '漢字')
substring_index(vl, vb, -1)
substring_index(vb, vl, -1), trim(leading vl from vc), lpad(vc, 5, vl), lpad(vc collate utf8mb4_bin, 3, vb collate utf8mb4_unicode_ci)
trim(leading vc from vl)
field(vl, vc)
field('漢字', vl, 'x')
locate(vc, vl)
locate(vl, vc), locate(vc, 'A'), locate('A', vc), instr('A', vc), instr(vc, 'A'), locate(vl, 'É'), locate(ch, _binary'ab'), locate(ch, x'4142')
locate('A' collate utf8mb4_bin, 'a' collate utf8mb4_general_ci), instr('A' collate utf8mb4_bin, 'a' collate utf8mb4_general_ci)
find_in_set('漢字', vl)
make_set(1, vl, '漢字')
elt(1, vl, '漢字')
export_set(5, vl, '漢字')
concat_ws('漢字', vl, vl)
ifnull(vl, '漢字')
collation(replace(vl, vb, vb)), collation(insert(vl, 1, 1, vb collate utf8mb4_unicode_ci)), collation(lpad(vl, 5, vc)), collation(replace(null, vl, vl))
vc in (v9, 'a')
vc in (v9, vb)
vc in (vb, v9), vb in (vc, v9), vc between vb and v9, vb in (v9, vc), vc in (da, vb, v9), 1 in (vc, v9)
vc in (da, v9)
da in (vc, v9)
vc in (t0, v9)
vc between v9 and vb
'a' in (vc, da, v9)
vc in (v9, vb collate utf8mb4_bin)
coalesce(concat(null), it), if(tb, repeat(null, null), da), coalesce(upper(null), t0)
greatest(lt, d0) + 0, greatest(vc, d0) + 0, greatest(tx, d0) div 1, greatest(lt, d0) | 0
nullif('2024-02-30', x'FF'), collation(nullif('a', vn)), nullif('a', _latin1'b')
vc regexp nullif('2024-02-30', x'FF')
cast(bn as json), json_array(cast('ab' as binary(4))), cast(cast('ab' as binary(4)) as json), cast(ifnull(bn, bn) as json)
json_overlaps(null, '%'), json_overlaps(null, ch), json_contains(null, ch), json_search(null, 'all', ye % bn)
json_overlaps('%', null)
json_object(null, json_set(json_length(js), '$.*', 1))
json_array(cast('-0' as json), cast('-0.0' as json), cast('[-0]' as json))
subtime('%b', json_contains(json_array(), bu)), addtime('x', ti / 0), timediff('x', ln(0))
subtime('1', json_contains(json_array(), bu))
timediff('x', da), timediff(da, 'x'), timediff(99, da), timediff(5, da)
time_format(' 7', '%H'), time_format('10-11-12', '%H')
period_add(9223372036854775807, 5), period_add(202401, 9223372036854775807), period_add(202401, -24288), period_add(202401, -24289)
extract(day_hour from 240229), extract(hour from 240229), extract(hour from 235959), extract(hour from 123456), extract(second from 1231), extract(second from 20003), extract(hour from 230231)
extract(day_minute from 10112), extract(day_minute from it + 240228), extract(hour from 1010101), extract(hour from 8381231), extract(hour from -240229), extract(second from 240229e0)
extract(hour from 240229.5), extract(second from 20240229.5), extract(second from 20240229.0)
timestampadd(hour, bu, t3), timestampadd(microsecond, fl, time'-01:02:03.5'), date_add(t3, interval 10000 hour)
maketime(0, 4, bi)
maketime(0, -4, 999999999999999999), maketime(0, 0, 1000000000000000000)
ts + interval if(tb, dz, vn) day, ts + interval case when 1 then de else vc end hour
regexp_replace(240229, 2, '漢字'), regexp_replace(it, '1', '漢字')
regexp_replace(vc, 'x', 'y') + 1, regexp_substr(vc, '.*') ^ 1
t0 in (dm, 64), t0 not in (99, dm)
da < if(1, time'12:30:45', 0.1)
((it, 2) < (2, json_length('[x')))
((it, 2) = (2, 3))
lpad(da, json_contains(time'-01:02:03.5', true), null)
left(null, json_length('[x'))
hour(ifnull(js, js)), time(coalesce(js, null)), date(any_value(js)), cast(ifnull(js, js) as time), cast(any_value(js) as datetime)
hour(if(id > 0, js, dm)), date(case when id > 0 then js else vn end), date_add(if(id > 0, js, vc), interval 1 week), cast(if(id > 0, js, 'x') as time(3))
timediff(js, ts), time_format(js, '%T'), timediff(ts, if(id > 0, js, js)), unix_timestamp(if(id > 0, js, js)), unix_timestamp(ifnull(js, js))
date_add(if(id > 0, t0, bb), interval 1 quarter), timestamp(if(id > 0, time'838:59:59', 10)), hour(if(id > 0, t0, bb))
t0 = cast('1.5' as json), t0 <=> cast('5' as json), t3 < cast('1.5' as json), t0 = cast('"12:30:45"' as json), strcmp(t0, cast('"a"' as json)), strcmp(json_array(), t3)
t0 >= '1e2', strcmp('1.5e3', t0), 'é' between tx and t0, 'é' between 'a' and t3
'é' in (bb, 'ab'), '漢字' in (vn, 'é', bb), 'é' between bb and 'zz'
ye = 1998.6, ye < 1999.5, ye in (1998.6, 5), nullif(0.5, ye), nullif(-0.4, ye), strcmp(10, ye), strcmp(timestamp'2024-02-29 12:30:00', ye), coercibility(cast(5 as signed))
greatest(d0, 'x'), greatest(d0, '2024-02-30'), greatest(timestamp'1970-01-01 00:00:00.125', '-3', '0'), least(d0, 'x')
greatest('10abc', 1) + 0, 64 <= greatest('10abc', true), cast(regexp_substr('12abc', '.*') as double), (_binary'ab' << 3) + 0, repeat('a', vn >> 1)
if(tb, lt, bb) + 1, if(id > 0, bb, lt) * 1
date_add(date_add('2024-02-29', interval 1 day), interval 1 day), timestampadd(day, 1, date_add(vc, interval 1 day)), date_add(timestampadd(day, 1, 240229), interval 1 day)
time(fm), date_add(t3, interval dm second), addtime(t3, dm), timestampadd(second, dm, timestamp'2024-02-29 12:30:00.125')
conv('-99999999999999999999', 10, 16), conv(bi, 16, -10), conv('-18446744073709551615', 10, 16)
format(1.5, 4294967298), format(240229, timestamp'2024-02-29 12:30:00')
json_array(ifnull(it, de), if(id, 5, 1.5), coalesce(null, it, de)), cast(ifnull(it, de) as json)
(1 / 1 * 'a') is null, isnull(1 / 1 + 'a')
unix_timestamp('2024-13-01'), unix_timestamp('%Y-%m-%d'), sha2('a', 0 like 'x'), left('abc', ('a', 1) < ('b', 2))
""".strip().split("\n")

QUERIES = [
    "SELECT space('1x'), left(ch, '1x'), substring(ch, 1, '1x') FROM t WHERE id < 0",
    "SELECT repeat(ch, json_length('[x')) FROM t WHERE id < 0",
    "SELECT space(json_length('[x')) FROM t WHERE id < 0",
    "SELECT substring(ch, 1, json_length('[x')) FROM t WHERE id < 0",
    "SELECT insert(ch, json_length('[x'), 1, 'x') FROM t WHERE id < 0",
    "SELECT concat(vl, '漢字') FROM t WHERE id < 0",
    "SELECT trim('漢字' FROM vl), substring_index(vl, '漢字', 1) FROM t WHERE id < 0",
    "SELECT id FROM t WHERE vl = '漢字'",
    "SELECT id FROM t WHERE vl = 'é'",
    "SELECT id FROM t WHERE vl <> '漢字'",
    "SELECT id FROM t WHERE vl IN ('漢字', 'a')",
    "SELECT id FROM t WHERE vl LIKE '漢字'",
    "SELECT id FROM t WHERE vl BETWEEN 'a' AND '漢字'",
    "SELECT count(*) FROM t GROUP BY vl HAVING vl <> '漢字'",
    "SELECT concat(null) AS c FROM t UNION SELECT de FROM t ORDER BY 1",
    "SELECT repeat(null, null) AS c FROM t UNION SELECT 9223372036854775807 ORDER BY 1",
    "SELECT tx AS c FROM t UNION SELECT subtime(time'838:59:59', ts) FROM t ORDER BY 1",
    "(SELECT 'a') UNION (SELECT 8.2304526008230452e-11)",
    "(SELECT 'a') UNION (SELECT dm / ts FROM t)",
    "(SELECT tx FROM t) UNION (SELECT db / 3e10 FROM t)",
    "(SELECT bn FROM t) UNION (SELECT dm FROM t)",
    "(SELECT bn FROM t) UNION (SELECT iz FROM t)",
    "(SELECT ye FROM t) UNION ALL (SELECT bn FROM t)",
    "(SELECT '漢字') EXCEPT (SELECT 0x41)",
    "(SELECT js FROM t) UNION (SELECT weight_string(st) FROM t)",
    "(SELECT bb FROM t) UNION (SELECT concat(v9, vc) FROM t)",
    "SELECT id FROM t WHERE t3 IN (5, '10:11:12.9991')",
    "SELECT cast('x' AS SIGNED) FROM t ORDER BY 1 LIMIT 2 OFFSET 9",
    "SELECT avg(DISTINCT x), avg(x), avg(DISTINCT x) * 3 FROM (SELECT -3.00000 AS x UNION ALL SELECT 0.1 UNION ALL SELECT 0) s",
]
WRITES = [
    "UPDATE IGNORE mine SET d = 20240230 WHERE id = 1",
    "UPDATE IGNORE mine SET d = '2024-02-30' WHERE id = 1",
    "UPDATE IGNORE mine SET d = 99999999999 WHERE id = 1",
    "UPDATE IGNORE mine SET d = -1 WHERE id = 1",
    "UPDATE IGNORE mine SET m = NULLIF(j, NULL)",
    "SELECT m FROM mine",
    "UPDATE IGNORE mine SET m = j",
    "SELECT m FROM mine",
    "UPDATE mine SET o = -0.05 WHERE id = 1",
    "UPDATE mine SET o = -f WHERE id = 1",
    "SELECT o FROM mine WHERE id = 1",
    "UPDATE mine SET tx = f / -3e10, v = f / -3e10 WHERE id = 1",
    "SELECT tx, v FROM mine WHERE id = 1",
    "UPDATE child SET id = 2, r = 77 WHERE id = 1",
    "UPDATE child SET u = 2, r = 77 WHERE id = 1",
    "UPDATE IGNORE child SET u = 2, r = 77 WHERE id = 1",
    "INSERT INTO child VALUES (1, 77, 9)",
    "UPDATE child SET r = 77, id = 1 WHERE id = 1",
    "UPDATE mine SET c = GREATEST(c, n) WHERE id = 1",
    "UPDATE mine SET v = GREATEST(1, n) WHERE id = 1",
]

use super::harness::check;

#[test]
fn reading() {
    check(
        r#"
        JSON_EXTRACT('[10, 20, [30, 40]]', '$[1]') → 20
        JSON_EXTRACT('[10, 20, [30, 40]]', '$[1]', '$[0]') → [20, 10]
        JSON_EXTRACT('[10, 20, [30, 40]]', '$[2][*]') → [30, 40]
        JSON_EXTRACT('[1, 2, 3, 4, 5]', '$[1 to 3]') → [2, 3, 4]
        JSON_EXTRACT('[1, 2, 3, 4, 5]', '$[last-2 to last]') → [3, 4, 5]
        JSON_EXTRACT('[1, 2]', '$[last]') → 2
        JSON_EXTRACT('{"a": 1, "b": {"a": 2}}', '$**.a') → [1, 2]
        JSON_EXTRACT('[[1, [2]], [[3]]]', '$**[0]**[0]') → [1, 2, 3]
        JSON_EXTRACT('{"a b": 1}', '$."a b"') → 1
        JSON_EXTRACT('{"a": 1, "b": 2}', '$.*') → [1, 2]
        JSON_EXTRACT('{"a": 1}', '$.a[0]') → 1
        JSON_EXTRACT('{"a": 1}', '$.a[0 to 3]') → [1]
        JSON_EXTRACT('{"a": 1}', '$.x') → NULL
        JSON_EXTRACT('{"a": 1}', 'a') → !3143
        JSON_EXTRACT('{"a": 1}', '$**') → !3143
        JSON_EXTRACT('{"a": 1', '$.a') → !3141
        JSON_EXTRACT(1, '$.a') → !3146
        JSON_EXTRACT(x'31', '$.a') → !3144
        JSON_EXTRACT(NULL, '$.a') → NULL
        JSON_EXTRACT('[1]', NULL) → NULL
        JSON'{"a": "x"}' -> '$.a' → "x"
        JSON'{"a": "x"}' ->> '$.a' → x
        JSON_VALUE('{"a": "x", "b": [1]}', '$.a') → x
        JSON_VALUE('{"a": "x", "b": [1]}', '$.b') → [1]
        JSON_KEYS('{"a": 1, "b": {"c": 30}}') → ["a", "b"]
        JSON_KEYS('{"a": 1, "b": {"c": 30}}', '$.b') → ["c"]
        JSON_KEYS('[1]') → NULL
        JSON_LENGTH('[1, 2, {"a": 3}]') → 3
        JSON_LENGTH('{"a": 1, "b": {"c": 30}}', '$.b') → 1
        JSON_LENGTH('1') → 1
        JSON_LENGTH('[1]', '$[*]') → !3149
        JSON_DEPTH('[10, {"a": 20}]') → 3
        JSON_DEPTH('true') → 1
        JSON_TYPE('[1]') → ARRAY
        JSON_TYPE(JSON_ARRAY(1)->'$[0]') → INTEGER
        JSON_TYPE('"x"') → STRING
        JSON_TYPE(NULL) → NULL
        JSON_VALID('{"a": 1}') → 1
        JSON_VALID('hello') → 0
        JSON_VALID(1) → 0
        JSON_VALID(NULL) → NULL
        JSON_STORAGE_SIZE('[1, 2]') → 11
        JSON_STORAGE_SIZE('null') → 2
        JSON_STORAGE_SIZE('70000') → 5
        JSON_STORAGE_SIZE('3000000000') → 9
        JSON_STORAGE_SIZE('[1,"x",null]') → 16
        JSON_STORAGE_SIZE('{"a": 1, "b": [true, 2]}') → 31
        JSON_STORAGE_SIZE(JSON_ARRAY(12.50)) → 14
        JSON_STORAGE_SIZE(JSON_ARRAY(DATE'2020-01-01')) → 18
        JSON_STORAGE_SIZE(JSON_ARRAY(REPEAT('a', 70000), 70000, JSON_ARRAY(70000))) → 70038
        JSON_STORAGE_FREE('[1, 2]') → 0
        "#,
    );
}

#[test]
fn changing() {
    check(
        r#"
        JSON_SET('{ "a": 1, "b": [2, 3]}', '$.a', 10, '$.c', '[true, false]') → {"a": 10, "b": [2, 3], "c": "[true, false]"}
        JSON_INSERT('{ "a": 1, "b": [2, 3]}', '$.a', 10, '$.c', JSON'[true, false]') → {"a": 1, "b": [2, 3], "c": [true, false]}
        JSON_REPLACE('{ "a": 1, "b": [2, 3]}', '$.a', 10, '$.c', '[true, false]') → {"a": 10, "b": [2, 3]}
        JSON_SET('[1, 2]', '$[5]', 3) → [1, 2, 3]
        JSON_SET('[1, 2]', '$[last-5]', 3) → [3, 1, 2]
        JSON_SET('1', '$[1]', 3) → [1, 3]
        JSON_SET('1', '$[last-1]', 3) → [3, 1]
        JSON_SET('1', '$[0]', 3) → 3
        JSON_SET('1', '$', 3) → 3
        JSON_SET('{"a": 1}', '$.b.c', 3) → {"a": 1}
        JSON_SET('{"a": 1}', '$.*', 3) → !3149
        JSON_SET('{"a": 1}', NULL, 3) → NULL
        JSON_SET('{"a": 1}', '$.a', NULL) → {"a": null}
        JSON_SET('{"a": 1}', '$.a') → !1582
        JSON_REMOVE('["a", ["b", "c"], "d"]', '$[1]') → ["a", "d"]
        JSON_REMOVE('{"a": 1, "b": 2}', '$.a', '$.x') → {"b": 2}
        JSON_REMOVE('[1]', '$') → !3153
        JSON_ARRAY_APPEND('["a", ["b", "c"], "d"]', '$[1]', 1) → ["a", ["b", "c", 1], "d"]
        JSON_ARRAY_APPEND('["a", ["b", "c"], "d"]', '$[0]', 2) → [["a", 2], ["b", "c"], "d"]
        JSON_ARRAY_APPEND('{"a": 1}', '$', 'z') → [{"a": 1}, "z"]
        JSON_ARRAY_INSERT('["a", {"b": [1, 2]}, [3, 4]]', '$[1]', 'x') → ["a", "x", {"b": [1, 2]}, [3, 4]]
        JSON_ARRAY_INSERT('["a"]', '$[100]', 'x') → ["a", "x"]
        JSON_ARRAY_INSERT('["a"]', '$.a', 'x') → !3165
        "#,
    );
}

#[test]
fn making() {
    check(
        r#"
        JSON_ARRAY(1, 'abc', NULL, 1.5, 2e0, TIME'11:30:24') → [1, "abc", null, 1.5, 2.0, "11:30:24.000000"]
        JSON_ARRAY() → []
        JSON_ARRAY(x'41') → ["base64:type15:QQ=="]
        JSON_ARRAY(UNCOMPRESS(COMPRESS('a'))) → ["base64:type251:YQ=="]
        JSON_OBJECT('id', 87, 'name', 'carrot') → {"id": 87, "name": "carrot"}
        JSON_OBJECT('a', 1, 'a', 2) → {"a": 2}
        JSON_OBJECT(1, 1) → {"1": 1}
        JSON_OBJECT(NULL, 1) → !3158
        JSON_OBJECT('a') → !1582
        JSON_QUOTE('null') → "null"
        JSON_QUOTE('a"b') → "a\"b"
        JSON_QUOTE(1) → !3064
        JSON_UNQUOTE('"abc"') → abc
        JSON_UNQUOTE('abc') → abc
        JSON_UNQUOTE('"\t\u0032"') → 	2
        JSON_UNQUOTE('"a"b"') → !3141
        JSON_UNQUOTE(JSON'"x"') → x
        JSON_PRETTY('{"a":[1,{}],"b":[]}') → {⏎  "a": [⏎    1,⏎    {}⏎  ],⏎  "b": []⏎}
        JSON_MERGE_PRESERVE('[1, 2]', '[true, false]') → [1, 2, true, false]
        JSON_MERGE_PRESERVE('{ "a": 1, "b": 2 }','{ "a": 3, "c": 4 }') → {"a": [1, 3], "b": 2, "c": 4}
        JSON_MERGE_PRESERVE('1', 'true') → [1, true]
        JSON_MERGE_PRESERVE('1', NULL) → NULL
        JSON_MERGE_PATCH('{ "a": 1, "b":2 }', '{ "a": 3, "c":4 }') → {"a": 3, "b": 2, "c": 4}
        JSON_MERGE_PATCH('{"a":1, "b":2}', '{"b":null}') → {"a": 1}
        JSON_MERGE_PATCH('{"a":{"x":1}}', '{"a":{"y":2}}') → {"a": {"x": 1, "y": 2}}
        JSON_MERGE_PATCH('[1, 2]', 'true') → true
        JSON_MERGE_PATCH(NULL, '{}') → NULL
        JSON_MERGE_PATCH(NULL, '1') → 1
        "#,
    );
}

#[test]
fn containing() {
    check(
        r#"
        JSON_CONTAINS('{"a": 1, "b": 2, "c": {"d": 4}}', '1', '$.a') → 1
        JSON_CONTAINS('{"a": 1, "b": 2, "c": {"d": 4}}', '1', '$.b') → 0
        JSON_CONTAINS('{"a": 1, "b": 2, "c": {"d": 4}}', '{"d": 4}', '$.c') → 1
        JSON_CONTAINS('{"a": 1}', '1', '$.x') → NULL
        JSON_CONTAINS('[1, [2, 3]]', '[2]') → 1
        JSON_CONTAINS('[1, 2]', '1.0') → 1
        JSON_CONTAINS_PATH('{"a": 1, "c": {"d": 4}}', 'one', '$.a', '$.e') → 1
        JSON_CONTAINS_PATH('{"a": 1, "c": {"d": 4}}', 'all', '$.a', '$.e') → 0
        JSON_CONTAINS_PATH('{"a": 1, "c": {"d": 4}}', 'all', '$.a', '$.c.d') → 1
        JSON_CONTAINS_PATH('{"a": 1}', 'some', '$.a') → !3154
        JSON_OVERLAPS('[1,3,5,7]', '[2,5,7]') → 1
        JSON_OVERLAPS('[1,3,5,7]', '[2,6]') → 0
        JSON_OVERLAPS('{"a":1,"b":10}', '{"c":1,"a":1}') → 1
        JSON_OVERLAPS('[4,5,6,7]', '6') → 1
        JSON_OVERLAPS('5', '5') → 1
        17 MEMBER OF '[23, "abc", 17, "ab", 10]' → 1
        'ab' MEMBER OF '[23, "abc", 17, "ab", 10]' → 1
        7 MEMBER OF '[23, "abc", 17, "ab", 10]' → 0
        NULL MEMBER OF '[1]' → NULL
        JSON_SEARCH('["abc", [{"k": "10"}, "def"], {"x":"abc"}, {"y z":"bcd"}]', 'one', 'abc') → "$[0]"
        JSON_SEARCH('["abc", [{"k": "10"}, "def"], {"x":"abc"}, {"y z":"bcd"}]', 'all', 'abc') → ["$[0]", "$[2].x"]
        JSON_SEARCH('["abc", [{"k": "10"}, "def"], {"x":"abc"}, {"y z":"bcd"}]', 'all', '%c%') → ["$[0]", "$[2].x", "$[3].\"y z\""]
        JSON_SEARCH('["abc", [{"k": "10"}, "def"], {"x":"abc"}]', 'all', '10', NULL, '$[*][0].k') → "$[1][0].k"
        JSON_SEARCH('["abc"]', 'all', 'x') → NULL
        JSON_SEARCH('["abc"]', 'some', 'x') → !3154
        JSON_SCHEMA_VALID('{"type":"object","required":["a"],"properties":{"a":{"type":"number","minimum":1}}}', '{"a": 1}') → 1
        JSON_SCHEMA_VALID('{"type":"object","required":["a"]}', '{}') → 0
        JSON_SCHEMA_VALID('{"properties":{"a":{"type":"number","minimum":1}}}', '{"a": 0}') → 0
        JSON_SCHEMA_VALID('[]', '{}') → !3853
        "#,
    );
}

#[test]
fn values_to_which_a_path_leads_in_many_ways_are_looked_at_once() {
    let document = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let path = format!("${}", "**[0]".repeat(20));
    check(&format!("JSON_LENGTH(JSON_EXTRACT('{document}', '{path}')) → 41"));
}

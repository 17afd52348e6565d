//! More SQL statements for the tests of the module `attacks`. Some statements use the smallest and largest numbers of a
//! type, which can crash a function. Others are short texts with large plans, or have aggregates that store all their
//! input. Further statements try to access data of other tenants or of the engine.

use super::expected::Expected::{self, Harmless, Refused, Stopped};

/// Statements, each with a name that describes the attempt.
pub(super) const STATEMENTS: &[(&str, Expected, &str)] = &[
    // The smallest and largest numbers of a type.
    (
        "the smallest number by minus one",
        Harmless,
        "SELECT count(*) AS n FROM samples WHERE (-9223372036854775807 - 1) / (value - value - 1) > 0 AND tenant = \
         'two'",
    ),
    (
        "the remainder of the smallest number",
        Harmless,
        "SELECT (-9223372036854775807 - 1) % -1 AS n",
    ),
    (
        "a product beyond the type",
        Harmless,
        "SELECT 9223372036854775807 * 9223372036854775807 AS n",
    ),
    (
        "a sum beyond the type",
        Harmless,
        "SELECT sum(n) AS n FROM (SELECT 9223372036854775807 AS n FROM samples) t",
    ),
    ("a shift by too much", Harmless, "SELECT 1 << 4000 AS n, 1 >> -1 AS m"),
    (
        "the magnitude of the smallest number",
        Harmless,
        "SELECT abs(-9223372036854775807 - 1) AS n",
    ),
    (
        "the greatest common divisor of the smallest number",
        Harmless,
        "SELECT gcd(-9223372036854775807 - 1, -1) AS n",
    ),
    (
        "a multiple beyond the type",
        Harmless,
        "SELECT lcm(9223372036854775807, 9223372036854775806) AS n",
    ),
    (
        "a factorial beyond the type",
        Harmless,
        "SELECT factorial(9223372036854775807) AS n",
    ),
    (
        "a power beyond the type",
        Harmless,
        "SELECT power(9223372036854775807, 9223372036854775807) AS n",
    ),
    (
        "rounded to too many places",
        Harmless,
        "SELECT round(1.5, 2147483647) AS n, trunc(1.5, -2147483648) AS m",
    ),
    (
        "the left part of a negative length",
        Harmless,
        "SELECT left('x', -9223372036854775807 - 1) AS x",
    ),
    (
        "the right part of a negative length",
        Harmless,
        "SELECT right('x', -9223372036854775807 - 1) AS x",
    ),
    (
        "a part from before the beginning",
        Harmless,
        "SELECT substr('x', -9223372036854775807 - 1, 9223372036854775807) AS x",
    ),
    (
        "a field that no text has",
        Harmless,
        "SELECT split_part('a', 'a', -9223372036854775807 - 1) AS x",
    ),
    (
        "a field of an empty text",
        Harmless,
        "SELECT split_part('', '', 9223372036854775807) AS x",
    ),
    (
        "an overlay far behind the end of a text",
        Harmless,
        "SELECT overlay('x' PLACING 'y' FROM 9223372036854775807 FOR 9223372036854775807) AS x",
    ),
    (
        "a character that does not exist",
        Harmless,
        "SELECT chr(1114112) AS x, chr(-1) AS y",
    ),
    (
        "an element before the first",
        Harmless,
        "SELECT array_element([1], -9223372036854775807 - 1) AS n",
    ),
    (
        "a slice of all numbers",
        Harmless,
        "SELECT array_slice([1, 2], -9223372036854775807 - 1, 9223372036854775807) AS n",
    ),
    (
        "a slice in steps of zero",
        Harmless,
        "SELECT array_slice([1, 2], 1, 2, 0) AS n",
    ),
    ("a series in steps of zero", Harmless, "SELECT range(1, 2, 0) AS n"),
    (
        "a series with a huge negative step",
        Harmless,
        "SELECT range(9223372036854775807, 9223372036854775800, -9223372036854775807 - 1) AS n",
    ),
    (
        "a padding of negative length",
        Harmless,
        "SELECT lpad('x', -9223372036854775807 - 1) AS x",
    ),
    (
        "a repeat of negative length",
        Harmless,
        "SELECT repeat('x', -9223372036854775807 - 1) AS x",
    ),
    (
        "a negative number of copies",
        Harmless,
        "SELECT array_repeat('x', -9223372036854775807 - 1) AS x",
    ),
    (
        "a list of negative length",
        Harmless,
        "SELECT array_resize([1], -9223372036854775807 - 1) AS x",
    ),
    (
        "a row before all rows",
        Harmless,
        "SELECT lag(value, -9223372036854775807 - 1) OVER (ORDER BY value) AS n FROM samples",
    ),
    (
        "a row after all rows",
        Harmless,
        "SELECT lead(value, 9223372036854775807) OVER (ORDER BY value) AS n FROM samples",
    ),
    (
        "the row with a negative number",
        Harmless,
        "SELECT nth_value(value, -9223372036854775807 - 1) OVER (ORDER BY value) AS n FROM samples",
    ),
    (
        "rows divided into zero parts",
        Harmless,
        "SELECT ntile(0) OVER (ORDER BY value) AS n FROM samples",
    ),
    (
        "a frame of all numbers",
        Harmless,
        "SELECT sum(value) OVER (ORDER BY value ROWS BETWEEN 9223372036854775807 PRECEDING AND 9223372036854775807 \
         FOLLOWING) AS n FROM samples",
    ),
    (
        "a range beyond the type",
        Harmless,
        "SELECT sum(value) OVER (ORDER BY value RANGE BETWEEN 9223372036854775807 PRECEDING AND \
         9223372036854775807 FOLLOWING) AS n FROM samples",
    ),
    (
        "an offset behind the last row",
        Harmless,
        "SELECT value FROM samples WHERE tenant = 'two' LIMIT 9223372036854775807 OFFSET 9223372036854775807",
    ),
    (
        "buckets of zero length",
        Harmless,
        "SELECT time_bucket('0s', time) AS t FROM samples",
    ),
    (
        "buckets of negative length",
        Harmless,
        "SELECT time_bucket('-1s', time) AS t FROM samples",
    ),
    (
        "one bucket for all times",
        Harmless,
        "SELECT time_bucket('292y', time) AS t FROM samples",
    ),
    (
        "bins of zero length",
        Harmless,
        "SELECT date_bin(interval '0 seconds', time) AS t FROM samples",
    ),
    (
        "bins of months from a distant origin",
        Harmless,
        "SELECT date_bin(interval '1 month', time, timestamp '1677-09-22') AS t FROM samples",
    ),
    (
        "a time after all times",
        Harmless,
        "SELECT time + interval '292277026596 years' AS t FROM samples",
    ),
    (
        "a time from the greatest number",
        Harmless,
        "SELECT to_timestamp(9223372036854775807) AS t, to_timestamp_seconds(9223372036854775807) AS u",
    ),
    (
        "a date that does not exist",
        Harmless,
        "SELECT make_date(2147483647, 12, 31) AS t, make_date(2024, -2147483648, 1) AS u",
    ),
    (
        "a time written without end",
        Harmless,
        "SELECT to_char(time, '%Y%m%d%H%M%S%f%+%c%v') AS t FROM samples",
    ),
    (
        "a time in an invalid format",
        Harmless,
        "SELECT to_char(time, '%!%Q%') AS t FROM samples",
    ),
    (
        "a profile over all times",
        Harmless,
        "SELECT * FROM top('process_cpu:cpu:nanoseconds:cpu:nanoseconds{}', -9223372036854775807, 9223372036854775807)",
    ),
    (
        "a graph of a negative number of nodes",
        Harmless,
        "SELECT * FROM flamegraph('process_cpu:cpu:nanoseconds:cpu:nanoseconds{}', 0, 'now', -9223372036854775807)",
    ),
    // Aggregates that store their input.
    (
        "the median of a large join",
        Stopped,
        "SELECT median(a.value + b.value * c.value) AS n FROM samples a, samples b, samples c, samples d, samples \
         e, samples f, samples g",
    ),
    (
        "each distinct value of a large join",
        Stopped,
        "SELECT array_agg(DISTINCT a.value || '/' || row_number() OVER ()) FROM samples a, samples b, samples c, \
         samples d, samples e, samples f",
    ),
    (
        "the values of a large join in order",
        Stopped,
        "SELECT array_agg(a.value ORDER BY b.value, c.value) FROM samples a, samples b, samples c, samples d, \
         samples e, samples f",
    ),
    (
        "a quantile with a thousand million centroids",
        Harmless,
        "SELECT approx_percentile_cont(value, 0.5, 1000000000) AS n FROM samples WHERE tenant = 'two'",
    ),
    // Large plans.
    (
        "all columns of a large join twice",
        Harmless,
        "SELECT a.*, b.*, c.*, d.*, a.*, b.*, c.*, d.* FROM samples a, samples b, samples c, samples d WHERE \
         a.tenant = 'two'",
    ),
    (
        "an explanation of a refused statement",
        Refused,
        "EXPLAIN VERBOSE COPY samples TO '/tmp/attack.csv'",
    ),
    ("an explanation of an explanation", Refused, "EXPLAIN EXPLAIN SELECT 1"),
    (
        "tables inside each other by LATERAL",
        Harmless,
        "SELECT count(*) AS n FROM samples a, LATERAL (SELECT b.value FROM samples b WHERE b.value = a.value) t \
         WHERE a.tenant = 'two'",
    ),
    (
        "a subquery in the ORDER BY of a subquery",
        Harmless,
        "SELECT count(*) AS n FROM samples WHERE value IN (SELECT value FROM samples WHERE tenant = 'two' ORDER BY \
         (SELECT max(value) FROM samples))",
    ),
    ("lists in lists", Harmless, "SELECT flatten([[[[[[[[[[1]]]]]]]]]]) AS n"),
    // Access to other data.
    (
        "another tenant's profiles by a selector",
        Harmless,
        "SELECT * FROM profiles('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"secret\"}', 0, 'now')",
    ),
    (
        "another tenant's graph",
        Harmless,
        "SELECT * FROM flamegraph('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=~\".*\"}', 0, 'now', 0)",
    ),
    (
        "another tenant's difference",
        Harmless,
        "SELECT * FROM diff('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"secret\"}', 0, 'now', \
         'process_cpu:cpu:nanoseconds:cpu:nanoseconds{}', 0, 'now')",
    ),
    (
        "another tenant's flat rows",
        Harmless,
        "SELECT * FROM flat WHERE function LIKE 'launch%' OR service_name LIKE 'sec%'",
    ),
    (
        "another tenant's rows by a join",
        Harmless,
        "SELECT st.frames FROM samples s RIGHT JOIN stacks st ON s.stack <> st.stack",
    ),
    (
        "another tenant's rows by EXPLAIN",
        Harmless,
        "EXPLAIN VERBOSE SELECT * FROM samples WHERE tenant = 'two'",
    ),
    (
        "another tenant's rows by EXPLAIN ANALYZE",
        Harmless,
        "EXPLAIN ANALYZE SELECT * FROM stacks WHERE tenant = 'two'",
    ),
    (
        "columns of every catalog",
        Harmless,
        "SELECT * FROM information_schema.columns",
    ),
    (
        "tables of every catalog",
        Harmless,
        "SELECT * FROM information_schema.tables",
    ),
    (
        "schemas of every catalog",
        Harmless,
        "SELECT * FROM information_schema.schemata",
    ),
    ("a function that names files", Refused, "SELECT * FROM metadata_cache()"),
    (
        "a function that lists statistics",
        Refused,
        "SELECT * FROM statistics_cache()",
    ),
    (
        "files by a glob pattern",
        Refused,
        "SELECT * FROM 'tables/samples/**/*.parquet'",
    ),
    (
        "a setting by SET",
        Refused,
        "SET datafusion.catalog.information_schema = true",
    ),
    ("a setting by RESET", Refused, "RESET datafusion.execution.batch_size"),
    ("all settings", Refused, "SHOW ALL"),
    ("a transaction", Refused, "START TRANSACTION"),
    ("rights", Refused, "GRANT ALL ON samples TO two"),
    ("a prepared statement", Refused, "PREPARE p AS SELECT 1"),
    ("two statements", Refused, "SELECT 1; SELECT 2"),
    ("a comment that does not end", Refused, "SELECT 1 /* "),
    ("a text that does not end", Refused, "SELECT 'x"),
    ("nothing", Refused, " ;; "),
];

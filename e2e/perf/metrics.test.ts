import { expect, test } from 'vitest';
import { sumOf } from './metrics.ts';

const text = `# HELP chancery_register_sql_query_seconds Duration
# TYPE chancery_register_sql_query_seconds histogram
chancery_register_sql_query_seconds_bucket{le="0.1",query="a"} 7
chancery_register_sql_query_seconds_count{query="a"} 12
chancery_register_sql_query_seconds_count{query="b"} 3
chancery_register_other_total 5
plain_total 1.5e+2
`;

test('sums a metric over its labels and leaves the others', () => {
  expect(sumOf(text, /_sql_query_seconds_count$/)).toBe(15);
  expect(sumOf(text, /^plain_total$/)).toBe(150);
  expect(sumOf(text, /^nothing$/)).toBe(0);
});

import { expect, test } from 'vitest';
import { samplesOf, sumOf } from './metrics.ts';

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

test('reads the lines of one metric with their labels', () => {
  const said = `apiserver_request_total{code="200",resource="a,b} c\\"d",verb="APPLY"} 12
apiserver_request_total_other{code="200"} 1
apiserver_request_total 3
`;
  expect(samplesOf(said, 'apiserver_request_total')).toEqual([
    { labels: { code: '200', resource: 'a,b} c\\"d', verb: 'APPLY' }, value: 12 },
    { labels: {}, value: 3 },
  ]);
  expect(samplesOf(said, 'apiserver_request')).toEqual([]);
});

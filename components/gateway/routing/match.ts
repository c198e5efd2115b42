import type { RouteRule } from './table.ts';

type SegmentTest = (segment: string) => boolean;

interface CompiledRule {
  readonly rule: RouteRule;
  readonly tests: readonly SegmentTest[];
  readonly open: boolean;
}

export type Matcher = (path: string) => RouteRule | undefined;

const hex32 = /^[0-9a-f]{32}$/i;

/** Compiles a routing table into a function from a clean path (no query) to the first matching rule. */
export function createMatcher(table: readonly RouteRule[]): Matcher {
  const byFirst = new Map<string, CompiledRule[]>();
  for (const rule of table) {
    const key = bucketKey(rule.path);
    const bucket = byFirst.get(key) ?? [];
    bucket.push(compile(rule));
    byFirst.set(key, bucket);
  }
  return (path) => {
    const segments = path.split('/');
    const found = byFirst.get(bucketKey(path))?.find((compiled) => covers(compiled, segments));
    if (found !== undefined) return found.rule;
    return byFirst.get(firstSegment(path))?.find((compiled) => covers(compiled, segments))?.rule;
  };
}

/** The first two segments, or the first alone where the table has no deeper path. */
function bucketKey(path: string): string {
  const second = path.indexOf('/', 1);
  if (second < 0) return path;
  const third = path.indexOf('/', second + 1);
  const head = third < 0 ? path : path.slice(0, third);
  return head.endsWith('/**') || head.includes('{') || head.endsWith('/') ? path.slice(0, second) : head;
}

function firstSegment(path: string): string {
  const second = path.indexOf('/', 1);
  return second < 0 ? path : path.slice(0, second);
}

function compile(rule: RouteRule): CompiledRule {
  const parts = rule.path.split('/');
  const open = parts.at(-1) === '**';
  const fixed = open ? parts.slice(0, -1) : parts;
  return { rule, open, tests: fixed.map(segmentTest) };
}

function segmentTest(part: string): SegmentTest {
  if (!part.startsWith('{')) return (segment) => segment === part;
  if (part.endsWith(':hex32}')) return (segment) => hex32.test(segment);
  return (segment) => segment !== '';
}

function covers(compiled: CompiledRule, segments: readonly string[]): boolean {
  const { tests, open } = compiled;
  if (open ? segments.length < tests.length : segments.length !== tests.length) return false;
  return tests.every((test, position) => test(segments[position] ?? ''));
}

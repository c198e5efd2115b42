import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { OperatorProcess } from './processes.ts';

const line = z.object({
  atMs: z.number(),
  ready: z.number(),
  why: z.string(),
  metrics: z.array(z.string()),
});

/** Readiness and metrics of an operator process at one time. */
export interface ProbeSample {
  /** Milliseconds of the epoch. */
  readonly atMs: number;
  /** Status of /ready; 0 without a response. */
  readonly ready: number;
  /** Body of /ready. */
  readonly why: string;
  /** Age of the caches in seconds, by resource. */
  readonly ages: ReadonlyMap<string, number>;
  /** Number of broken watches, by resource. */
  readonly failures: ReadonlyMap<string, number>;
  /** Number of complete lists, by served resource. */
  readonly lists: ReadonlyMap<string, number>;
}

/** A probe in the network of a pod that queries the process continuously, without the API server. */
export interface Observer {
  readonly pod: string;
  readonly samples: readonly ProbeSample[];
  stop(): Promise<void>;
}

const script = `
const { get } = require('node:http');
const ask = (path) => new Promise((resolve) => {
  const silent = () => resolve({ status: 0, text: '' });
  const asked = get({ host: '127.0.0.1', port: 9090, path, agent: false, timeout: 5000 }, (answer) => {
    let text = '';
    answer.on('data', (part) => { text += part; });
    answer.on('error', silent);
    answer.on('end', () => resolve({ status: answer.statusCode, text }));
  });
  asked.on('timeout', () => asked.destroy());
  asked.on('error', silent);
});
const look = async () => {
  const [ready, metrics] = await Promise.all([ask('/ready'), ask('/metrics')]);
  const lines = metrics.text.split('\\n').filter((each) => each.startsWith('informer_'));
  console.log(JSON.stringify({ atMs: Date.now(), ready: ready.status, why: ready.text, metrics: lines }));
  setTimeout(look, 150);
};
look();
`;

/** Queries a process several times per second; needs root on the host of its pod. */
export async function observe({ pod, pid }: Pick<OperatorProcess, 'pod' | 'pid'>): Promise<Observer> {
  const args = [`--target=${pid}`, '--net', process.execPath, '-e', script];
  const child = spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const samples: ProbeSample[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (text) => void samples.push(sampleOf(text)));
  await once(lines, 'line');
  return {
    pod,
    samples,
    stop: async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

function sampleOf(text: string): ProbeSample {
  const { metrics, ...said } = line.parse(JSON.parse(text));
  return {
    ...said,
    ages: byResource(metrics, 'informer_last_sync_age_seconds'),
    failures: byResource(metrics, 'informer_stream_failures_total'),
    lists: byResource(metrics, 'informer_lists_total'),
  };
}

/** Sums of a metric by resource. */
function byResource(metrics: readonly string[], name: string): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const each of metrics) {
    const [, labels = '', value = ''] = /^(?:\w+)\{(.*)\} (\S+)$/.exec(each) ?? [];
    const resource = /resource="([^"]*)"/.exec(labels)?.[1];
    if (!each.startsWith(`${name}{`) || resource === undefined) continue;
    sums.set(resource, (sums.get(resource) ?? 0) + Number(value));
  }
  return sums;
}

/** Effects of an interruption on the caches of a process. */
export interface Interruption {
  /** Milliseconds until each informer detected the end of its watch; without informers that did not. */
  readonly noticedMs: ReadonlyMap<string, number>;
  /** Complete lists by each informer. */
  readonly lists: ReadonlyMap<string, number>;
  /** Informers of served kinds. */
  readonly informers: readonly string[];
}

/** Evaluates the samples since a time in milliseconds of the epoch. */
export function interruptionSince({ samples, pod }: Observer, fromMs: number): Interruption {
  const before = samples.findLast(({ atMs }) => atMs <= fromMs);
  const after = samples.filter(({ atMs, ready }) => atMs > fromMs && ready !== 0);
  const last = after.at(-1);
  if (before === undefined || last === undefined) throw new Error(`nothing was seen of ${pod}`);
  // a kind that is no longer served keeps its counts and has no age
  const informers = [...before.lists.keys()].filter((each) => before.ages.has(each));
  const noticed = informers.flatMap((each): (readonly [string, number])[] => {
    const known = before.failures.get(each) ?? 0;
    const first = after.find(({ failures }) => (failures.get(each) ?? 0) > known);
    return first === undefined ? [] : [[each, first.atMs - fromMs]];
  });
  const lists = informers.map((each): readonly [string, number] => [
    each,
    (last.lists.get(each) ?? 0) - (before.lists.get(each) ?? 0),
  ]);
  return { noticedMs: new Map(noticed), lists: new Map(lists), informers };
}

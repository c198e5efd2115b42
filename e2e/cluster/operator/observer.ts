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

/** What a process of the operator said of itself at one moment. */
export interface Sight {
  /** Milliseconds of the epoch. */
  readonly atMs: number;
  /** Status of /ready; 0 when nobody answered. */
  readonly ready: number;
  /** What /ready said. */
  readonly why: string;
  /** Seconds since the cluster last spoke, by resource. */
  readonly ages: ReadonlyMap<string, number>;
  /** Watches that broke, by resource. */
  readonly failures: ReadonlyMap<string, number>;
  /** Complete lists, by resource: of those that the cluster has. */
  readonly lists: ReadonlyMap<string, number>;
}

/** Somebody in the network of a pod who asks the process in it all the time, without the API server. */
export interface Observer {
  readonly pod: string;
  readonly sights: readonly Sight[];
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

/** Begins to ask a process several times a second; needs to be root on the host of its pod. */
export async function observe({ pod, pid }: Pick<OperatorProcess, 'pod' | 'pid'>): Promise<Observer> {
  const args = [`--target=${pid}`, '--net', process.execPath, '-e', script];
  const child = spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const sights: Sight[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (text) => void sights.push(sightOf(text)));
  await once(lines, 'line');
  return {
    pod,
    sights,
    stop: async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

function sightOf(text: string): Sight {
  const { metrics, ...said } = line.parse(JSON.parse(text));
  return {
    ...said,
    ages: byResource(metrics, 'informer_last_sync_age_seconds'),
    failures: byResource(metrics, 'informer_stream_failures_total'),
    lists: byResource(metrics, 'informer_lists_total'),
  };
}

/** Sums of the lines of a metric for each resource. */
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

/** What the caches of a process went through since a moment. */
export interface Interruption {
  /** Milliseconds until each informer knew that its watch had ended; of none that did not know. */
  readonly noticedMs: ReadonlyMap<string, number>;
  /** Complete lists by each informer. */
  readonly lists: ReadonlyMap<string, number>;
  /** Informers of kinds that the cluster has. */
  readonly informers: readonly string[];
}

/** What an observer saw since a moment, in milliseconds of the epoch. */
export function interruptionSince({ sights, pod }: Observer, fromMs: number): Interruption {
  const before = sights.findLast(({ atMs }) => atMs <= fromMs);
  const after = sights.filter(({ atMs, ready }) => atMs > fromMs && ready !== 0);
  const last = after.at(-1);
  if (before === undefined || last === undefined) throw new Error(`nothing was seen of ${pod}`);
  const informers = [...before.lists.keys()];
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

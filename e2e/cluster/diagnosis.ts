import { afterEach } from 'vitest';
import { run } from './kubectl.ts';

interface Container {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
}

interface Pod {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly phase: string;
    readonly containerStatuses?: readonly Container[];
    readonly initContainerStatuses?: readonly Container[];
  };
}

const read = async (namespace: string, ...args: readonly string[]): Promise<string> => {
  const { code, out, err } = await run('kubectl', ['-n', namespace, ...args]);
  return (code === 0 ? out : `(kubectl ${args.join(' ')}: ${err})`).trimEnd();
};

const indent = (text: string): string =>
  text
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n');

/** Diagnosis of a namespace: pods, resources, events and last log lines. */
export async function report(namespace: string): Promise<string> {
  const parts = [
    `--- pods of ${namespace}`,
    await read(namespace, 'get', 'pods', '-o', 'wide'),
    '--- resources',
    await read(namespace, 'get', 'chancery', '-o', 'wide'),
    await conditions(namespace),
    '--- events, latest last',
    await lastEvents(namespace),
    '--- last lines of failing containers',
    ...(await lastLines(namespace)),
  ];
  return `\n${parts.filter((part) => part !== '').join('\n')}\n`;
}

async function conditions(namespace: string): Promise<string> {
  const line =
    '{range .items[*]}{.kind}/{.metadata.name}{range .status.conditions[*]} {.type}={.status} {.reason} {.message};{end}{"\\n"}{end}';
  return read(namespace, 'get', 'chancery', '-o', `jsonpath=${line}`);
}

async function lastEvents(namespace: string): Promise<string> {
  const columns = 'custom-columns=TYPE:.type,REASON:.reason,OBJECT:.involvedObject.name,MESSAGE:.message';
  const all = await read(namespace, 'get', 'events', '--sort-by=.metadata.creationTimestamp', '-o', columns);
  const lines = all
    .split('\n')
    .filter((text) => !/\b(?:Pulled|Created|Started|Scheduled|SuccessfulCreate)\b/.test(text));
  return lines
    .slice(-25)
    .map((text) => text.slice(0, 300))
    .join('\n');
}

async function lastLines(namespace: string): Promise<string[]> {
  const { items } = JSON.parse(await read(namespace, 'get', 'pods', '-o', 'json')) as { items: Pod[] };
  const parts: string[] = [];
  for (const { metadata, status } of items) {
    const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
    const failing = all.filter((one) => one.restartCount > 0 || (!one.ready && status.phase !== 'Succeeded'));
    for (const { name, restartCount } of failing) {
      const log = ['logs', metadata.name, '-c', name, '--tail=15'];
      parts.push(
        `  ${metadata.name}/${name}, ${restartCount} restarts`,
        indent(await read(namespace, ...log)),
      );
      if (restartCount > 0)
        parts.push('  before its last restart', indent(await read(namespace, ...log, '--previous')));
    }
  }
  return parts;
}

/** Prints the report of a namespace after each test of this file that failed. */
export function explainFailures(namespace: string): void {
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') process.stderr.write(await report(namespace));
  });
}

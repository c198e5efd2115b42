import { z } from 'zod';
import { apply, eventually, kubectl, must } from '../kubectl.ts';
import {
  agentObjects,
  type Beside,
  fileOf,
  serverDeployment,
  serverSocket,
  system,
  withoutAgents,
} from './objects.ts';

const inNamespace = ['-n', system];
const rollout = (what: string) =>
  kubectl(...inNamespace, 'rollout', 'status', what, '--timeout=90s').then(() => undefined);

/**
 * Runs SPIRE: the server first, because agents need the bundle that it writes.
 * @param beside sidecars of the server
 */
export async function ensureSpire(beside?: Beside): Promise<void> {
  await apply(system, ...withoutAgents, serverDeployment(beside));
  await rollout('deployment/spire-server');
  await eventually(async () => {
    const bundle = await kubectl(...inNamespace, 'get', 'configmap/spire-bundle', '-o', 'jsonpath={.data}');
    if (!bundle.includes('BEGIN CERTIFICATE')) throw new Error(`the bundle is ${bundle}`);
  });
  await apply(system, ...agentObjects);
  await rollout('daemonset/spiffe-csi-driver');
  await rollout('daemonset/spire-agent');
}

/** Output of a spire-server command. */
async function server(args: readonly string[], input?: string): Promise<string> {
  const command = ['/spire-server', ...args, '-socketPath', serverSocket];
  const exec = [
    ...inNamespace,
    'exec',
    '-i',
    'deployment/spire-server',
    '-c',
    'spire-server',
    '--',
    ...command,
  ];
  return must('kubectl', exec, input === undefined ? {} : { input });
}

const selector = z.object({ type: z.string(), value: z.string() });

/** Entries in the format of entries.json. */
const entriesFile = z.object({
  entries: z.array(
    z.object({
      parent_id: z.string(),
      spiffe_id: z.string(),
      x509_svid_ttl: z.number().optional(),
      selectors: z.array(selector),
    }),
  ),
});

const spiffeId = z.object({ trust_domain: z.string(), path: z.string() });

/** Entries as spire-server prints them. */
const shown = z.object({
  entries: z.array(
    z.object({
      id: z.string(),
      spiffe_id: spiffeId,
      parent_id: spiffeId,
      x509_svid_ttl: z.number(),
      selectors: z.array(selector),
    }),
  ),
});

export type Entry = z.output<typeof shown>['entries'][number];

export async function showEntries(): Promise<readonly Entry[]> {
  return shown.parse(JSON.parse(await server(['entry', 'show', '-output', 'json']))).entries;
}

type Registered = Pick<
  z.output<typeof entriesFile>['entries'][number],
  'parent_id' | 'spiffe_id' | 'selectors'
>;

const textOf = ({ trust_domain, path }: Entry['spiffe_id']): string => `spiffe://${trust_domain}${path}`;

/** An entry as one text, for comparison. */
function grant({ parent_id, spiffe_id, selectors }: Registered): string {
  const selectorTexts = selectors.map(({ type, value }) => `${type}:${value}`).sort();
  return [parent_id, spiffe_id, ...selectorTexts].join(' ');
}

/** The grants of a server's entries. */
export function grantsOf(entries: readonly Entry[]): readonly string[] {
  const grants = entries.map(({ parent_id, spiffe_id, selectors }) =>
    grant({ parent_id: textOf(parent_id), spiffe_id: textOf(spiffe_id), selectors }),
  );
  return grants.sort();
}

/** Registers exactly the entries of `spire/entries.json`. */
export async function ensureEntries(): Promise<void> {
  const { entries } = entriesFile.parse(JSON.parse(fileOf('entries.json')));
  const found = await showEntries();
  if (grantsOf(found).join() === entries.map(grant).sort().join()) return;
  for (const { id } of found) await server(['entry', 'delete', '-entryID', id]);
  await server(['entry', 'create', '-data', '-'], fileOf('entries.json'));
}

/** Sets the time to live of all SVIDs in seconds; agents replace current ones at once. */
export async function setTimeToLive(seconds: number): Promise<void> {
  const { entries } = entriesFile.parse(JSON.parse(fileOf('entries.json')));
  const ids = new Map((await showEntries()).map(({ id, spiffe_id }) => [textOf(spiffe_id), id]));
  const changed = entries
    .filter(({ x509_svid_ttl }) => x509_svid_ttl !== undefined)
    .map((entry) => ({ ...entry, entry_id: ids.get(entry.spiffe_id), x509_svid_ttl: seconds }));
  await server(['entry', 'update', '-data', '-'], JSON.stringify({ entries: changed }));
}

/** Removes the agents and their sockets from every node during an action. */
export async function whileAgentsAreAway(happens: () => Promise<void>): Promise<void> {
  await selectNodes({ 'chancery.dev/agent': 'away' });
  try {
    await kubectl(...inNamespace, 'wait', 'pod', '-l', 'app=spire-agent', '--for=delete', '--timeout=60s');
    await happens();
  } finally {
    await selectNodes(null);
    await rollout('daemonset/spire-agent');
  }
}

async function selectNodes(nodeSelector: object | null): Promise<void> {
  const patch = JSON.stringify({ spec: { template: { spec: { nodeSelector } } } });
  await kubectl(...inNamespace, 'patch', 'daemonset/spire-agent', '--type=merge', '-p', patch);
}

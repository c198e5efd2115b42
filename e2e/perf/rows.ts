import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSystem } from '../harness/system.ts';
import { connectionMemory } from './connection-memory.ts';
import { issuing } from './credentials/issuing.ts';
import { presenting } from './credentials/presenting.ts';
import { sdJwts } from './credentials/sd-jwt.ts';
import { statusLists } from './credentials/status-list.ts';
import { importing } from './credentials/trust-list.ts';
import { deliveries } from './deliveries.ts';
import { exporting } from './export.ts';
import { deliveriesThroughGateway } from './gateway-deliveries.ts';
import { growth } from './growth.ts';
import { growingAppend } from './growth-append.ts';
import { idleRegisters } from './idle.ts';
import { signing, unwrapping } from './key-use.ts';
import { latency, latencyOfFour } from './latency.ts';
import { memory, type Stretch } from './memory.ts';
import { packed } from './packed.ts';
import { pauseAfterKill } from './pause.ts';
import type { Row } from './report.ts';
import { sealToClient } from './seal-to-client.ts';
import { gatewayCpu, minting, startAndMemory } from './services.ts';
import type { Stage } from './stage.ts';
import { throughput, throughputOfFour } from './throughput.ts';
import { signingInElsewhere } from './ways-in/federation.ts';
import { oracles } from './ways-in/oracle.ts';
import { signingInByPasskey } from './ways-in/passkey.ts';
import { refreshBesideSignIns } from './ways-in/refresh.ts';
import { signingIn } from './ways-in/sign-in.ts';
import { actions, encryptedActions } from './workflows/actions.ts';
import { disclosing } from './workflows/disclosures.ts';
import type { Lengths } from './workflows/lengths.ts';
import { instancesUnderLoad } from './workflows/load.ts';
import { rebuilding } from './workflows/rebuild.ts';
import { rehearsal } from './workflows/rehearsal.ts';
import { routeHelper } from './workflows/routing.ts';
import { toNextParty } from './workflows/to-next-party.ts';

/** A measurement that can be selected by name. Those with the same number of validators share a running system. */
export interface Measurement {
  readonly name: string;
  readonly what: string;
  /** 0: it starts what it needs itself. */
  readonly validators: 0 | 1 | 4;
  measure(stage: Stage | undefined): Promise<readonly Row[]>;
}

function staged(measure: (stage: Stage) => Promise<readonly Row[]>): Measurement['measure'] {
  return (stage) => {
    if (stage === undefined) throw new Error('this measurement needs a running system');
    return measure(stage);
  };
}

/** Sizes of the measurements that can be extended. */
export interface Extent {
  readonly memory: Stretch;
  /** Transactions of the register that grows. */
  readonly rows: number;
  readonly workflows: Lengths;
}

/** Progress is written to standard error, apart from the figures. */
const tell = (text: string): void => void process.stderr.write(`  ${text}\n`);

/** All measurements in their order. */
export function measurements(extent: Extent): readonly Measurement[] {
  const on = (
    validators: 1 | 4,
    name: string,
    what: string,
    measure: (stage: Stage) => Promise<readonly Row[]>,
  ): Measurement => ({ name, what, validators, measure: staged(measure) });
  const single = (measure: (stage: Stage, lengths: Lengths) => Promise<Row>) => async (stage: Stage) => [
    await measure(stage, extent.workflows),
  ];
  const several = (measure: (stage: Stage, lengths: Lengths) => Promise<readonly Row[]>) => (stage: Stage) =>
    measure(stage, extent.workflows);
  return [
    on(1, 'one', 'confirmed transactions per second, one validator', throughput),
    on(1, 'packed', 'confirmed transactions per second in batches, one validator', packed),
    on(1, 'export', 'export and verify a register, transactions per second', exporting),
    on(1, 'latency', 'submit to confirmed, one validator', async (stage) => [await latency(stage)]),
    on(1, 'tokens', 'tokens over mutual TLS', async (stage) => [await minting(stage)]),
    on(1, 'gateway', 'CPU of the gateway for a request', async (stage) => [await gatewayCpu(stage)]),
    on(1, 'hub', 'deliveries per second of a hub, one group and 1,000 groups', deliveries),
    on(1, 'hub-gateway', 'deliveries per second through the gateway', deliveriesThroughGateway),
    on(1, 'hub-latency', 'seal to client', async (stage) => [await sealToClient(stage)]),
    on(1, 'hub-memory', 'memory of an idle connection of a hub', connectionMemory),
    on(1, 'unwrap', 'content keys unwrapped', async (stage) => [await unwrapping(stage)]),
    on(1, 'sign', 'digests signed over gRPC', async (stage) => [await signing(stage)]),
    on(1, 'sign-in', 'sign-ins by password, and with an authenticator app', several(signingIn)),
    on(1, 'refresh', 'p99 of a refresh while others sign in', single(refreshBesideSignIns)),
    on(1, 'passkey', 'sign-ins by passkey', single(signingInByPasskey)),
    on(1, 'oracle', 'known and unknown addresses, by turns', several(oracles)),
    on(1, 'append', 'CPU for an append as a register grows', async (stage) => [await growingAppend(stage)]),
    on(1, 'workflow', 'actions of workflows on a register of development', several(actions)),
    on(1, 'workflow-encrypted', 'first actions on an encrypted register', several(encryptedActions)),
    on(1, 'workflow-latency', "action submitted until the next party's is there", single(toNextParty)),
    on(1, 'route', 'CPU of the route helper', single(routeHelper)),
    on(1, 'rehearsal', 'a full rehearsal against its actions', several(rehearsal)),
    on(1, 'rebuild', 'rows of instances made again from the ledger', single(rebuilding)),
    on(1, 'disclosures', 'disclosures of an instance with 20 steps', single(disclosing)),
    on(
      1,
      'workflow-load',
      '50 instances side by side, each through its four steps',
      several(instancesUnderLoad),
    ),
    ...ofCredentials(extent.workflows),
    on(4, 'four', 'confirmed transactions per second, four validators', throughputOfFour),
    on(4, 'latency-four', 'submit to confirmed, four validators', async (stage) => [
      await latencyOfFour(stage),
    ]),
    on(4, 'memory', 'memory of the validators as transactions are sealed', (stage) =>
      memory(stage, extent.memory),
    ),
    on(4, 'pause', 'pause after kill -9 of the proposer', async (stage) => [await pauseAfterKill(stage)]),
    on(4, 'idle', '1,000 registers at rest', idleRegisters),
    {
      name: 'growth',
      what: 'appends, reads and counts as a register grows; 1,000 registers',
      validators: 0,
      measure: () => growth(extent.rows, tell),
    },
    {
      name: 'provider',
      what: 'CPU of a sign-in by the identity provider of an organisation',
      validators: 0,
      measure: () => signingInElsewhere(extent.workflows),
    },
    {
      name: 'sd-jwt',
      what: 'SD-JWT VCs issued and verified, beside a library',
      validators: 0,
      measure: () => sdJwts(extent.workflows),
    },
    { name: 'start', what: 'start and memory of local mode', validators: 0, measure: alone },
  ];
}

/** Measurements of the credential service and of trust lists. */
function ofCredentials(lengths: Lengths): readonly Measurement[] {
  const on = (
    name: string,
    what: string,
    measure: (stage: Stage, lengths: Lengths) => Promise<readonly Row[]>,
  ): Measurement => ({ name, what, validators: 1, measure: staged((stage) => measure(stage, lengths)) });
  return [
    on('credential', 'credentials issued to wallets, alone, in a whole flow and in batches', issuing),
    on('presentation', 'presentations verified, SD-JWT VC and mdoc', presenting),
    on('status-list', 'a status changed until it is seen; reads of a status list', statusLists),
    on('trust-list', 'pauses while a large trust list is imported', importing),
  ];
}

async function alone(): Promise<readonly Row[]> {
  const dir = mkdtempSync(join(tmpdir(), 'chancery-bench-start-'));
  try {
    await (await startSystem({ dataDir: dir })).stop();
    return await startAndMemory(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

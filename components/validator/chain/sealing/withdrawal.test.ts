import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type Entry, encodeBatch, scanSegment, segmentHeaderBytes } from '../../disk/log/format.ts';
import { World } from '../../testing/world.ts';
import { decodeRecord } from '../records/entries.ts';
import type { SignerBatch } from './ports.ts';

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.remove();
});

const quickRounds = { leaderElection: { heartbeatIntervalMs: 100, leaderTimeoutMs: 101 } };

/** A request that never returns, as a dying process leaves it. */
const never = () => new Promise<never>(() => {});

const refuse = () =>
  Promise.reject(new AppError('conflict', 'DOUBLE_SIGN_REFUSED', 'Something else was signed here'));

function isWithdrawal(entry: Entry): boolean {
  const record = decodeRecord(entry);
  return record.kind === 'own' && record.value.isWithdrawn === true;
}

/** The newest segment of a log. */
async function readSegment({ directory }: World) {
  const [newest = ''] = (await readdir(join(directory, 'log'))).sort().slice(-1);
  const path = join(directory, 'log', newest);
  const bytes = await readFile(path);
  const { batches } = scanSegment(bytes, Number(bytes.readBigUInt64LE(8)));
  return { path, header: bytes.subarray(0, segmentHeaderBytes), batches };
}

const countWithdrawals = async (world: World) =>
  (await readSegment(world)).batches.flatMap(({ entries }) => entries).filter(isWithdrawal).length;

/** Ends the log after that many withdrawals, as a crash between two forced writes does. */
async function cutAfter(world: World, withdrawals: number): Promise<void> {
  const { path, header, batches } = await readSegment(world);
  const kept: Buffer[] = [];
  let left = withdrawals;
  for (const { sequence, entries } of batches) {
    const end = entries.findIndex((entry) => isWithdrawal(entry) && left-- === 0);
    kept.push(encodeBatch(sequence, end === -1 ? entries : entries.slice(0, end)));
    if (end !== -1) break;
  }
  await writeFile(path, Buffer.concat([header, ...kept]));
}

/** A validator whose batch of one docket is logged and refused, since it signed a nil precommit there. */
async function openRefused(): Promise<World> {
  const world = new World();
  worlds.push(world);
  await world.open();
  await world.begin(quickRounds);
  const batches: SignerBatch[] = [];
  const { signBatch } = world.signer;
  world.signer.signBatch = (batch) => {
    batches.push(batch);
    return never();
  };
  await world.submit(world.sign().text);
  await waitFor(() => batches.length === 1);
  await world.close();
  const precommit = batches[0]?.messages[2];
  if (precommit === undefined) throw new Error('there is no precommit in the batch');
  await world.signer.sign({ kind: 'consensus', message: { ...precommit, docket: undefined } });
  Object.assign(world.signer, { signBatch });
  return world;
}

for (const withdrawals of [0, 1, 2]) {
  test(`a set of one recovers from a crash after ${withdrawals} of two withdrawals`, async () => {
    const world = await openRefused();
    const { sign, signBatch } = world.signer;
    Object.assign(world.signer, { sign: refuse, signBatch: refuse });
    await world.open();
    await waitFor(async () => (await countWithdrawals(world)) === 2);
    await world.close();
    Object.assign(world.signer, { sign, signBatch });
    await cutAfter(world, withdrawals);
    expect(await countWithdrawals(world)).toBe(withdrawals);
    await world.open();
    await world.sealed(2);
    expect(world.ledger.dockets[1]?.certificate.round).toBeGreaterThan(0);
  });
}

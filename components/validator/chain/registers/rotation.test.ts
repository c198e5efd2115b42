import { afterEach, describe, expect, test } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { validatorSetHash } from '#core/ledger/consensus.ts';
import { memberDid } from '#core/ledger/did.ts';
import { buildOperation, governanceDraft } from '#core/ledger/governance/build.ts';
import { operationSchema } from '#core/ledger/governance/operation.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { Cluster } from '../../testing/cluster.ts';
import { testKey } from '../../testing/keys.ts';
import { ownerKey, registerId } from '../../testing/world.ts';

const clusters: Cluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

async function openCluster(): Promise<Cluster> {
  const cluster = new Cluster(4);
  clusters.push(cluster);
  await cluster.open();
  await cluster.begin();
  return cluster;
}

/** Rotates a validator's key by the register's owner and returns the docket that contains the change. */
async function rotate(cluster: Cluster, validatorId: string, seed: number): Promise<number> {
  const { state } = cluster.member(0).register;
  const now = formatLedgerTimestamp(BigInt(Date.now()) * 1000n);
  const { publicKey, sign } = testKey(seed);
  const proof = encodeBase64(sign(possessionBytes({ registerId, validatorId, publicKey })));
  const operation = operationSchema.parse({
    operationType: 'rotate-validator-key',
    proposerDid: memberDid(ownerKey.address),
    proposedAt: now,
    validatorEntry: { validatorId, publicKey, algorithm: 'ED25519', proofOfPossession: proof },
  });
  const context = { docketNumber: state.height, timestamp: now, verifier: state.verifier };
  const draft = governanceDraft('rotate-validator-key', buildOperation(state.ledger, operation, context));
  const { txId } = await cluster.submit(cluster.member(0), { ...draft, key: ownerKey });
  await waitFor(() => cluster.ledger.sealed.has(txId), { what: 'the rotation', deadlineMs: 20_000 });
  return cluster.ledger.dockets.findIndex(({ docket }) => docket.header.transactionIds.includes(txId));
}

/** Submits through a member until the validator signs a docket from `from` on. */
async function sealsAgain(cluster: Cluster, validatorId: string, from: number): Promise<void> {
  await waitFor(
    async () => {
      await cluster.submit(cluster.member(0), { payload: { at: performance.now() } });
      return cluster.ledger.dockets
        .slice(from)
        .some(({ certificate }) => certificate.signatures.some((one) => one.validatorId === validatorId));
    },
    { what: `a seal of ${validatorId}`, deadlineMs: 20_000 },
  );
}

const headersOf = (cluster: Cluster) => cluster.ledger.dockets.map(({ docket }) => docket.header);

/** The keys with which validator-1 attested some dockets. */
function votersOf(cluster: Cluster, headers: readonly { readonly hash: string }[]): Set<string> {
  const hashes = new Set(headers.map(({ hash }) => hash));
  const own = cluster.ledger.attestations.filter(({ validatorId }) => validatorId === 'validator-1');
  return new Set(own.filter((vote) => hashes.has(vote.docketHash)).map(({ publicKey }) => publicKey));
}

const keyed = (seeds: readonly number[]) =>
  seeds.map((seed, index) => ({
    validatorId: `validator-${index}`,
    publicKey: testKey(seed).publicKey,
    algorithm: 'ED25519' as const,
  }));

describe('a validator whose key was rotated', { timeout: 60_000 }, () => {
  test('signs votes, dockets and attestations with the new key from the next docket on, also after a restart', async () => {
    const cluster = await openCluster();
    await cluster.submit(cluster.member(0));
    await cluster.sealed(2);
    const bringing = await rotate(cluster, 'validator-1', 121);
    await sealsAgain(cluster, 'validator-1', bringing + 1);
    const rotated = cluster.member(1);
    await cluster.stop(rotated);
    await cluster.start(rotated);
    const restarted = cluster.ledger.dockets.length;
    await sealsAgain(cluster, 'validator-1', restarted + 1);
    const { address } = testKey(121);
    await waitFor(
      async () => {
        await cluster.submit(cluster.member(0), { payload: { at: performance.now() } });
        return headersOf(cluster).some(({ validatorAddress }) => validatorAddress === address);
      },
      { what: 'a docket that it proposed', deadlineMs: 20_000 },
    );
    await cluster.agreed();
    const [old, now] = [keyed([20, 21, 22, 23]), keyed([20, 121, 22, 23])].map(validatorSetHash);
    const [before, after] = [
      headersOf(cluster).slice(0, bringing + 1),
      headersOf(cluster).slice(bringing + 1),
    ];
    expect(new Set(before.map((header) => header.validatorSetHash))).toEqual(new Set([old]));
    expect(new Set(after.map((header) => header.validatorSetHash))).toEqual(new Set([now]));
    expect(after.map((header) => header.validatorAddress)).not.toContain(testKey(21).address);
    expect(votersOf(cluster, before)).toEqual(new Set([testKey(21).publicKey]));
    expect(votersOf(cluster, after)).toEqual(new Set([testKey(121).publicKey]));
    for (const { engine, messages } of cluster.members) {
      expect(engine.peering.evidence(registerId)).toEqual([]);
      expect(messages).not.toContain('a validator sent a faulty message');
    }
  });

  test('is silent where a register names a key that it does not hold, and the others continue', async () => {
    const cluster = await openCluster();
    const bringing = await rotate(cluster, 'validator-2', 99);
    for (let index = 0; index < 6; index += 1) {
      await cluster.submit(cluster.member(0), { payload: { index } });
      await cluster.sealed(bringing + 2 + index);
    }
    const signers = cluster.ledger.dockets
      .slice(bringing + 1)
      .flatMap(({ certificate }) => certificate.signatures.map(({ validatorId }) => validatorId));
    expect(signers).not.toContain('validator-2');
    await cluster.agreed();
    expect(cluster.member(2).register.status).toBe('Running');
    const back = await rotate(cluster, 'validator-2', 122);
    await sealsAgain(cluster, 'validator-2', back + 1);
  });
});

import { afterEach, describe, expect, test } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { provesDoubleSign } from '#core/ledger/governance/evidence.ts';
import type { OpenProposal } from '#core/ledger/governance/rules.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { Cluster, type Member } from '../../testing/cluster.ts';
import { sendConflictingVotes } from '../../testing/equivocator.ts';
import { registerId } from '../../testing/world.ts';

const clusters: Cluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

async function openCluster(logSize?: Cluster['logSize']): Promise<Cluster> {
  const cluster = new Cluster(4);
  clusters.push(cluster);
  if (logSize !== undefined) cluster.logSize = logSize;
  await cluster.open();
  await cluster.begin();
  await cluster.agreed();
  return cluster;
}

const evidenceOf = (member: Member) => member.engine.peering.evidence(registerId);
const proposalsOf = (member: Member): readonly OpenProposal[] => member.register.state.ledger.proposals;
const metrics = (member: Member) => member.runtime.telemetry.registry.metrics();

async function holds(member: Member, count = 1): Promise<void> {
  await waitFor(() => evidenceOf(member).length === count, {
    what: `${count} at ${member.id}`,
    deadlineMs: 20_000,
  });
}

async function proposed(cluster: Cluster, members = cluster.members): Promise<void> {
  for (const member of members) {
    await waitFor(() => proposalsOf(member).length > 0, {
      what: `a proposal at ${member.id}`,
      deadlineMs: 30_000,
    });
  }
}

/** Seals some further dockets. */
async function resumeAfterFull(cluster: Cluster, dockets: number): Promise<void> {
  for (let index = 0; index < dockets; index += 1) {
    const { txId } = await cluster.submit(cluster.member(0), {
      payload: { more: cluster.ledger.sealed.size },
    });
    await waitFor(() => cluster.ledger.sealed.has(txId), { deadlineMs: 20_000 });
  }
  await cluster.agreed();
}

describe('a member that votes twice', { timeout: 90_000 }, () => {
  test('is convicted at all members by one message to one of them, and its suspension is proposed once', async () => {
    const cluster = await openCluster();
    const equivocator = cluster.member(3);
    sendConflictingVotes(cluster, equivocator, cluster.member(0));
    for (const member of cluster.members) await holds(member);
    const ids = new Set(cluster.members.map((member) => evidenceOf(member)[0]?.id));
    expect(ids.size).toBe(1);
    await proposed(cluster);
    sendConflictingVotes(cluster, equivocator, cluster.member(1), { kind: 'precommit' });
    for (const member of cluster.members) await holds(member, 2);
    await resumeAfterFull(cluster, 4);
    for (const member of cluster.members) {
      expect(proposalsOf(member)).toMatchObject([{ status: 'Pending', votes: [] }]);
      expect(member.register.pool.size).toBe(0);
      expect(member.register.status).toBe('Running');
      expect(member.register.state.members).toHaveLength(4);
    }
    const { state } = cluster.member(0).register;
    const operation = proposalsOf(cluster.member(0))[0]?.operation;
    if (operation?.operationType !== 'suspend-validator') throw new Error('not a suspension');
    const { evidence, validatorId, proposerDid } = operation;
    expect(validatorId).toBe(equivocator.id);
    expect(proposerDid).not.toBe(`did:platform:w:${equivocator.signer.key.walletAddress}`);
    const accused = state.ledger.validators.find((each) => each.validatorId === equivocator.id);
    if (evidence?.kind !== 'double-sign' || accused === undefined) throw new Error('no evidence');
    const verifier = createVerifier(nodeEd25519());
    expect(provesDoubleSign(registerId, evidence, accused, verifier)).toBe(true);
    const opened = await Promise.all(
      cluster.members.map(async (member) =>
        Number(/suspension_proposals_total (\d+)/.exec(await metrics(member))?.[1]),
      ),
    );
    expect(opened.reduce((sum, each) => sum + each, 0)).toBe(1);
    expect(await metrics(cluster.member(2))).toMatch(/equivocations_total\{kind="duplicate-vote"\} 2\b/);
    expect(equivocator.signer.signed.some(({ kind }) => kind === 'suspension')).toBe(false);
  });

  test('stays convicted after a restart without a second proposal; a member that was down is notified', async () => {
    const cluster = await openCluster();
    const [witness, other, away, equivocator] = cluster.members;
    if (!witness || !other || !away || !equivocator) throw new Error('four members');
    await cluster.stop(away);
    sendConflictingVotes(cluster, equivocator, witness);
    await holds(witness);
    await holds(other);
    await proposed(cluster, [witness, other]);
    const before = evidenceOf(witness);
    for (const member of [witness, other]) {
      await cluster.stop(member);
      await cluster.start(member);
    }
    await waitFor(() => evidenceOf(witness).length === 1);
    expect(evidenceOf(witness)).toEqual(before);
    expect(await metrics(witness)).toMatch(/evidence_held 1\b/);
    await cluster.start(away);
    await holds(away);
    await resumeAfterFull(cluster, 2);
    expect(proposalsOf(away)).toHaveLength(1);
    await cluster.stop(away);
    await cluster.start(away);
    await waitFor(() => evidenceOf(away).length === 1);
  });

  test('is proposed for suspension by the next member when the first cannot sign', async () => {
    const cluster = await openCluster();
    const equivocator = cluster.member(3);
    const silent = cluster.member(1);
    let asked = 0;
    for (const member of [silent, cluster.member(2)]) {
      member.signer.before = ({ kind }) => {
        if (kind !== 'suspension') return;
        asked += 1;
        throw new Error('the signing component is away');
      };
    }
    sendConflictingVotes(cluster, equivocator, silent);
    await proposed(cluster);
    expect(asked).toBeGreaterThan(0);
    expect(cluster.member(0).signer.signed.some(({ kind }) => kind === 'suspension')).toBe(true);
  });

  test('cannot fill memory or log with what it signs, nor hide what another one does', async () => {
    const cluster = await openCluster();
    const [witness, equivocator, second] = [cluster.member(0), cluster.member(3), cluster.member(2)];
    for (let round = 0; round < 30; round += 1)
      sendConflictingVotes(cluster, equivocator, witness, { round });
    for (let index = 0; index < 100; index += 1) {
      sendConflictingVotes(cluster, equivocator, witness, {
        fills: ['aa', index.toString(16).padStart(2, '0')],
      });
    }
    expect(evidenceOf(witness)).toHaveLength(8);
    expect(witness.messages).toContain(
      'a validator sent too many faulty messages and is ignored for a while',
    );
    expect(
      witness.messages.filter(
        (message) => message === 'a validator signed conflicting messages; the evidence is stored',
      ),
    ).toHaveLength(8);
    sendConflictingVotes(cluster, second, witness);
    expect(evidenceOf(witness)).toHaveLength(9);
    await holds(cluster.member(1), 9);
  });

  test('stays convicted when its segment of the log is deleted', async () => {
    const cluster = await openCluster({ segmentBytes: 20_000, retainBytes: 60_000 });
    const witness = cluster.member(0);
    sendConflictingVotes(cluster, cluster.member(3), witness);
    await holds(witness);
    const [before] = evidenceOf(witness);
    await proposed(cluster);
    const blob = 'x'.repeat(8_000);
    for (let index = 0; index < 24; index += 1) {
      const { txId } = await cluster.submit(witness, { payload: { index, blob } });
      await waitFor(() => cluster.ledger.sealed.has(txId), { deadlineMs: 20_000 });
    }
    await cluster.stop(witness);
    await cluster.start(witness);
    expect(evidenceOf(witness)).toEqual([before]);
  });
});

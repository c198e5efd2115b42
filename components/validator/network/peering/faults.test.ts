import { afterEach, describe, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket, type Docket, docketValue } from '../../chain/building/docket.ts';
import type { Message, UnsignedMessage } from '../../chain/consensus/messages.ts';
import { certificateOf, signable } from '../../chain/sealing/sign-bytes.ts';
import type { RegisterState } from '../../chain/state/state.ts';
import { Cluster, type Member } from '../../testing/cluster.ts';
import { testKey } from '../../testing/keys.ts';
import { registerId } from '../../testing/world.ts';
import type { Envelope, ProposalEnvelope } from '../transport/transport.ts';

const clusters: Cluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

async function openCluster(size: number): Promise<Cluster> {
  const cluster = new Cluster(size);
  clusters.push(cluster);
  await cluster.open();
  await cluster.begin();
  await cluster.agreed();
  return cluster;
}

/** The first proposer of the current height. */
function nextProposer(cluster: Cluster): Member {
  return cluster.member(cluster.ledger.dockets.length % cluster.members.length);
}

function signedBy(cluster: Cluster, member: Member, state: RegisterState, plain: UnsignedMessage): Message {
  const key = testKey(20 + cluster.members.indexOf(member));
  const timestamp = plain.kind === 'proposal' ? plain.value.timestamp : (plain.timestamp ?? 'nil');
  const signature = encodeBase64(key.sign(signBytes(signable(state, plain, timestamp))));
  const own = { validatorId: member.id, signature };
  return plain.kind === 'proposal' ? { ...plain, ...own } : { ...plain, timestamp, ...own };
}

/** A docket of the same transactions with another timestamp. */
function otherDocket({ register, signer }: Member, txIds: readonly string[], state: RegisterState): Docket {
  const transactions = txIds.flatMap((txId) => register.pool.find(txId)?.transaction ?? []);
  const nowMicros = BigInt(Date.now()) * 1000n + 7n;
  return buildDocket(state, transactions, { validatorAddress: signer.key.walletAddress, nowMicros });
}

function twinOf(
  cluster: Cluster,
  equivocator: Member,
  envelope: ProposalEnvelope,
  state: RegisterState,
): Envelope {
  const docket = otherDocket(equivocator, envelope.header.transactionIds, state);
  const { kind, height, round, polRound } = envelope.proposal;
  const value = docketValue(docket.header);
  const proposal = signedBy(cluster, equivocator, state, { kind, height, round, polRound, value });
  if (proposal.kind !== 'proposal') throw new Error('no proposal');
  const recordHashes = docket.transactions.map(({ leaf }) => encodeHex(leaf));
  return { kind: 'proposal', registerId, proposal, header: docket.header, recordHashes };
}

describe('a proposer that equivocates', { timeout: 40_000 }, () => {
  it.each([
    ['to halves', 2],
    ['to one member', 1],
  ])('%s: one docket is sealed, and all members hold the evidence', async (_name, deceived) => {
    const cluster = await openCluster(4);
    const equivocator = nextProposer(cluster);
    const others = cluster.members.filter((member) => member !== equivocator);
    const { state } = equivocator.register;
    const targets = new Set(others.slice(0, deceived).map(({ id }) => id));
    const twins = new Map<string, Envelope>();
    cluster.network.tamper = (from, to, envelope) => {
      const isLie = from === equivocator.id && targets.has(to) && envelope.kind === 'proposal';
      if (!isLie || envelope.proposal.height !== state.height) return envelope;
      const name = `${envelope.proposal.round}/${envelope.header.hash}`;
      const twin = twins.get(name) ?? twinOf(cluster, equivocator, envelope, state);
      twins.set(name, twin);
      return structuredClone(twin);
    };
    await cluster.submit(equivocator);
    await cluster.sealed(2);
    await cluster.agreed();
    expect(cluster.ledger.dockets).toHaveLength(2);
    for (const member of others) {
      const { peering } = member.engine;
      await waitFor(() => peering.evidence(registerId).length > 0, { what: `evidence at ${member.id}` });
      expect(peering.evidence(registerId)[0]).toMatchObject({
        height: 1,
        validatorIds: [equivocator.id],
        evidence: { kind: 'duplicate-proposal' },
      });
      expect(member.messages).toContain('a validator signed conflicting messages; the evidence is stored');
      expect(member.register.status).toBe('Running');
    }
  });
});

describe('forged messages of other validators', { timeout: 40_000 }, () => {
  it('a double vote is evidence at all members', async () => {
    const cluster = await openCluster(4);
    const [equivocator, first, second] = [cluster.member(3), cluster.member(0), cluster.member(1)];
    const { state } = equivocator.register;
    const vote = (hash: string) => {
      const value = { hash, merkleRoot: hash, logRoot: hash };
      const plain = { kind: 'prevote', height: state.height, round: 0, value, timestamp: 't' } as const;
      const message = signedBy(cluster, equivocator, state, plain);
      if (message.kind === 'proposal') throw new Error('no vote');
      return { kind: 'vote', registerId, vote: message } as const;
    };
    first.engine.peering.receive(equivocator.id, vote('aa'.repeat(32)));
    // A repetition is no new evidence; a different message is.
    first.engine.peering.receive(equivocator.id, vote('aa'.repeat(32)));
    expect(first.engine.peering.evidence(registerId)).toHaveLength(0);
    first.engine.peering.receive(equivocator.id, vote('bb'.repeat(32)));
    expect(first.engine.peering.evidence(registerId)).toHaveLength(1);
    await waitFor(() => second.engine.peering.evidence(registerId).length === 1);
    await cluster.submit(second);
    await cluster.sealed(2);
  });

  it('two certificates of one height halt the register at every member that sees them', async () => {
    const cluster = await openCluster(4);
    const txIds = [(await cluster.submit(cluster.member(0))).txId];
    const { state } = cluster.member(1).register;
    await cluster.sealed(2);
    await cluster.agreed();
    const [sealed] = cluster.ledger.dockets.slice(-1);
    const docket = otherDocket(cluster.member(0), txIds, state);
    const value = { ...docketValue(docket.header), timestamp: 't' };
    const precommits = cluster.members.slice(0, 3).map((member) => {
      const plain = { kind: 'precommit', height: state.height, round: 5, value, timestamp: 't' } as const;
      const message = signedBy(cluster, member, state, plain);
      if (message.kind === 'proposal') throw new Error('no vote');
      return message;
    });
    const second = certificateOf(state, { height: state.height, round: 5, value, precommits });
    if (sealed === undefined) throw new Error('nothing is sealed');
    const lie = { ...second, signatures: second.signatures.slice(0, 2) };
    const tell = (certificate: typeof second) =>
      cluster.member(0).engine.peering.receive('validator-1', {
        kind: 'evidence',
        registerId,
        evidence: { kind: 'conflicting-certificate', first: sealed.certificate, second: certificate },
      });
    tell(lie);
    expect(cluster.member(0).register.status).toBe('Running');
    tell(second);
    for (const { register } of cluster.members) {
      await waitFor(() => register.status === 'Halted');
      expect(register.facts.haltedBecause).toBe('two certificates exist for docket 1');
    }
    const metrics = await cluster.member(3).runtime.telemetry.registry.metrics();
    expect(metrics).toMatch(/consensus_equivocations_total\{kind="conflicting-certificate"\} 1\b/);
    expect(metrics).toMatch(/registers_halted 1\b/);
    // Two certificates do not convict one validator of one act, so no suspension is proposed.
    expect(cluster.members.flatMap(({ signer }) => signer.signed.map(({ kind }) => kind))).not.toContain(
      'suspension',
    );
    // The register stays halted after a restart.
    await cluster.stop(cluster.member(2));
    await cluster.start(cluster.member(2));
    expect(cluster.member(2).register.status).toBe('Halted');
    expect(cluster.member(2).engine.peering.evidence(registerId)).toHaveLength(1);
  });

  it('forged, foreign and malformed messages change nothing and count as faults', async () => {
    const cluster = await openCluster(4);
    const [honest, equivocator] = [cluster.member(0), cluster.member(1)];
    const { state } = equivocator.register;
    const { peering } = honest.engine;
    const value = { hash: 'aa'.repeat(32), merkleRoot: 'aa'.repeat(32), logRoot: 'aa'.repeat(32) };
    const plain = { kind: 'precommit', height: state.height, round: 0, value, timestamp: 't' } as const;
    const good = signedBy(cluster, equivocator, state, plain);
    if (good.kind === 'proposal') throw new Error('no vote');
    const forged = [
      { ...good, validatorId: 'validator-2' },
      { ...good, round: 1 },
      { ...good, signature: 'AAAA' },
      { ...good, value: { ...value, hash: 'zz' } },
      { ...good, validatorId: 'validator-9' },
    ];
    for (const vote of forged) peering.receive(equivocator.id, { kind: 'vote', registerId, vote });
    expect(honest.register.machine.step).toBe('idle');
    peering.receive('validator-9', { kind: 'vote', registerId, vote: good });
    expect(honest.register.machine.step).toBe('idle');
    expect(honest.messages).toContain('a validator sent a faulty message');
    // A validator with too many faults is ignored for a while, even for valid messages.
    for (let index = 0; index < 60; index += 1) {
      for (const vote of forged) peering.receive(equivocator.id, { kind: 'vote', registerId, vote });
    }
    expect(honest.messages).toContain('a validator sent too many faulty messages and is ignored for a while');
    peering.receive(equivocator.id, { kind: 'vote', registerId, vote: good });
    expect(honest.register.machine.step).toBe('idle');
    peering.receive('validator-2', { kind: 'vote', registerId, vote: good });
    expect(honest.register.machine.step).not.toBe('idle');
  });
});

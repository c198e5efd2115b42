import { afterEach, describe, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import type { PeerEvidence } from '../../chain/consensus/evidence.ts';
import { Cluster } from '../../testing/cluster.ts';
import { conflictingVotes } from '../../testing/equivocator.ts';
import { registerId } from '../../testing/world.ts';
import type { Envelope } from '../transport/transport.ts';

const clusters: Cluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

async function openCluster(): Promise<Cluster> {
  const cluster = new Cluster(4);
  clusters.push(cluster);
  await cluster.open();
  await cluster.begin();
  await cluster.agreed();
  return cluster;
}

const envelope = (evidence: PeerEvidence): Envelope => ({ kind: 'evidence', registerId, evidence });

describe('evidence from another member', { timeout: 40_000 }, () => {
  test('of a height that is not reached here is verified when it is', async () => {
    const cluster = await openCluster();
    const [member, equivocator] = [cluster.member(0), cluster.member(3)];
    const { state } = member.register;
    const later = { ...state, height: state.height + 1 };
    const [first, second] = conflictingVotes(cluster, equivocator, later);
    const { peering } = member.engine;
    peering.receive('validator-1', envelope({ kind: 'duplicate-vote', first, second }));
    expect(peering.evidence(registerId)).toEqual([]);
    await cluster.submit(cluster.member(1));
    await cluster.sealed(2);
    await waitFor(() => peering.evidence(registerId).length === 1);
    expect(member.messages).not.toContain('a validator sent a faulty message');
    expect(peering.evidence(registerId)).toMatchObject([{ height: 2, validatorIds: ['validator-3'] }]);
  });

  test('of future heights is bounded per sender', async () => {
    const cluster = await openCluster();
    const [member, equivocator] = [cluster.member(0), cluster.member(3)];
    const { state } = member.register;
    const { peering } = member.engine;
    const ahead = (height: number, round: number): PeerEvidence => {
      const [first, second] = conflictingVotes(cluster, equivocator, { ...state, height }, { round });
      return { kind: 'duplicate-vote', first, second };
    };
    for (let height = 100; height < 200; height += 1) {
      peering.receive('validator-3', envelope(ahead(height, 0)));
    }
    peering.receive('validator-1', envelope(ahead(2, 0)));
    await cluster.submit(cluster.member(1));
    await cluster.sealed(2);
    await waitFor(() => peering.evidence(registerId).length === 1);
  });

  test('that proves nothing counts as a fault; known evidence costs nothing', async () => {
    const cluster = await openCluster();
    const [member, equivocator] = [cluster.member(0), cluster.member(3)];
    const { peering } = member.engine;
    const [first, second] = conflictingVotes(cluster, equivocator, member.register.state);
    const forged = { ...second, signature: first.signature };
    const lies: PeerEvidence[] = [
      { kind: 'duplicate-vote', first, second: first },
      { kind: 'duplicate-vote', first, second: forged },
      { kind: 'duplicate-vote', first, second: { ...second, round: 1 } },
      { kind: 'duplicate-vote', first, second: { ...second, kind: 'precommit' } },
      { kind: 'duplicate-vote', first, second: { ...second, validatorId: 'validator-2' } },
      { kind: 'duplicate-proposal', first, second },
    ];
    const faults = async () =>
      Number(
        /peer_faults_total\{reason="evidence"\} (\d+)/.exec(
          await member.runtime.telemetry.registry.metrics(),
        )?.[1] ?? 0,
      );
    for (const lie of lies) peering.receive('validator-1', envelope(lie));
    expect(peering.evidence(registerId)).toEqual([]);
    expect(await faults()).toBe(lies.length);
    peering.receive('validator-1', envelope({ kind: 'duplicate-vote', first, second }));
    peering.receive('validator-2', envelope({ kind: 'duplicate-vote', first: second, second: forged }));
    expect(peering.evidence(registerId)).toHaveLength(1);
    expect(await faults()).toBe(lies.length);
  });
});

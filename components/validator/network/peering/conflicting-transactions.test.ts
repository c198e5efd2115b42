import { afterEach, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { Cluster, type Member } from '../../testing/cluster.ts';

const clusters: Cluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.remove();
});

/** Four members that neither propose nor announce, so that each has only its own submissions. */
async function openApart(): Promise<Cluster> {
  const cluster = new Cluster(4);
  clusters.push(cluster);
  await cluster.open();
  await cluster.begin();
  await cluster.agreed();
  return cluster;
}

async function pauseAll(cluster: Cluster, mode: 'Paused' | 'Running'): Promise<void> {
  for (const member of cluster.members) await member.engine.setMode(member.register.id, mode);
}

function withoutHints(cluster: Cluster): void {
  cluster.network.tamper = (_from, _to, envelope) => (envelope.kind === 'hint' ? undefined : envelope);
}

const stateOf = (member: Member, txId: string) =>
  member.register.pool.find(txId)?.stage ?? member.register.tombstones.find(txId)?.code;

describe('transactions that only one member has', { timeout: 40_000 }, () => {
  it('of many successors of one transaction, each at another member, one is sealed', async () => {
    const cluster = await openApart();
    const parent = await cluster.submit(cluster.member(0), { payload: { parent: 1 } });
    await cluster.sealed(2);
    await cluster.agreed();
    withoutHints(cluster);
    await pauseAll(cluster, 'Paused');
    const children = await Promise.all(
      cluster.members.map((member, index) =>
        cluster.submit(member, { payload: { child: index }, previous: parent.txId }),
      ),
    );
    await pauseAll(cluster, 'Running');
    await cluster.sealed(3);
    await cluster.agreed();
    const sealed = children.filter(({ txId }) => cluster.ledger.sealed.has(txId));
    expect(sealed).toHaveLength(1);
    for (const [index, member] of cluster.members.entries()) {
      const own = children[index]?.txId ?? '';
      await waitFor(() => cluster.ledger.sealed.has(own) || stateOf(member, own) === 'VAL_CHAIN_FORK', {
        what: `a verdict at ${member.id}`,
      });
      expect(member.register.pool.size).toBe(0);
    }
  });

  it('of two records with the same id one is sealed', async () => {
    const cluster = await openApart();
    withoutHints(cluster);
    await pauseAll(cluster, 'Paused');
    // The signature covers id and payload hash only, so other metadata makes another record of the same id.
    const one = cluster.sign({ metadata: { place: 'here' } });
    const other = { ...one, text: one.text.replace('"here"', '"there"') };
    for (const [index, { text }] of [one, other].entries()) {
      expect((await cluster.submitTo(cluster.member(index), text)).status).toBe(200);
    }
    const leaves = [0, 1].map(
      (index) => cluster.member(index).register.pool.find(one.txId)?.transaction.leaf,
    );
    expect(leaves[0]).not.toEqual(leaves[1]);
    await pauseAll(cluster, 'Running');
    await cluster.sealed(2);
    await cluster.agreed();
    for (const { register } of cluster.members) {
      await waitFor(() => register.facts.storedHeight === 2);
      expect(register.pool.size).toBe(0);
      expect(register.status).toBe('Running');
    }
  });

  it('of two replays at two members one is sealed and the other is rejected', async () => {
    const cluster = await openApart();
    withoutHints(cluster);
    await pauseAll(cluster, 'Paused');
    const nowMs = Date.now();
    const drafts = [0, 1].map((index) => ({ payload: { same: 1 }, createdAtMs: nowMs + index }));
    const twins = await Promise.all(
      drafts.map((draft, index) => cluster.submit(cluster.member(index), draft)),
    );
    await pauseAll(cluster, 'Running');
    await cluster.sealed(2);
    await cluster.agreed();
    const sealed = twins.filter(({ txId }) => cluster.ledger.sealed.has(txId));
    expect(sealed).toHaveLength(1);
    const [index, lost] = [...twins.entries()].find(([, { txId }]) => !cluster.ledger.sealed.has(txId)) ?? [];
    const member = cluster.member(index ?? 0);
    await waitFor(() => stateOf(member, lost?.txId ?? '') === 'VAL_REPLAY_001');
    expect(cluster.members.every(({ register }) => register.status === 'Running')).toBe(true);
  });

  it('that were not announced are fetched from their proposer, parents and children', async () => {
    const cluster = await openApart();
    withoutHints(cluster);
    const proposer = cluster.member(cluster.ledger.dockets.length % 4);
    await pauseAll(cluster, 'Paused');
    let previous: string | undefined;
    for (let index = 0; index < 30; index += 1) {
      const draft = { payload: { index, blob: 'x'.repeat(index * 1_000) }, previous };
      previous = (await cluster.submit(proposer, draft)).txId;
    }
    await pauseAll(cluster, 'Running');
    await cluster.sealed(31);
    await cluster.agreed();
    const head = cluster.ledger.dockets.at(-1);
    expect(head?.certificate.round).toBe(0);
  });

  it('that a proposer withholds are not sealed, and the set continues without them', async () => {
    const cluster = await openApart();
    withoutHints(cluster);
    const proposer = cluster.member(cluster.ledger.dockets.length % 4);
    proposer.engine.peering.records = () => [];
    const kept = await cluster.submit(proposer, { payload: { withheld: 1 } });
    const other = cluster.members.find((member) => member !== proposer);
    const open = other && (await cluster.submit(other, { payload: { open: 1 } }));
    await waitFor(() => open !== undefined && cluster.ledger.sealed.has(open.txId), { deadlineMs: 20_000 });
    expect(cluster.ledger.sealed.has(kept.txId)).toBe(false);
  });
});

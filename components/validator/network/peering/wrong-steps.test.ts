import { afterEach, describe, expect, it } from 'vitest';
import { type Turn, turnsDefinition } from '#core/blueprint/testing/turns.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildCandidate } from '../../intake/verification/judge.ts';
import { parseSubmission } from '../../intake/verification/submission.ts';
import { Cluster } from '../../testing/cluster.ts';
import { testKey } from '../../testing/keys.ts';
import type { Draft } from '../../testing/submissions.ts';
import { publicationOf, turnSubmission } from '../../testing/turns.ts';
import { registerId, systemKey, userKey } from '../../testing/world.ts';

const clerk = testKey(3);
const instanceId = '6f3a2c10-0000-4000-8000-000000000001';
let cluster: Cluster | undefined;
afterEach(() => cluster?.remove());

describe('a member that proposes wrong steps', { timeout: 60_000 }, () => {
  it.each<[string, Partial<Turn>, Partial<Draft>]>([
    ['a step that does not start', { seq: 1, wrong: { seq: 0 } }, { key: clerk }],
    ['a state that does not follow', { wrong: { current: [{ actionId: 0 }] } }, {}],
    ['an unknown pin', { pin: 'e'.repeat(64) }, {}],
    ['malformed routing', {}, { metadata: { routing: '{}' } }],
  ])('seals none of them: %s', async (_what, turn, draft) => {
    const opened = new Cluster(4);
    cluster = opened;
    await opened.open();
    await opened.begin();
    const publication = publicationOf(registerId, turnsDefinition(clerk.address), systemKey);
    expect((await opened.submitTo(opened.member(0), publication.text)).status).toBe(200);
    await opened.sealed(2);
    await opened.agreed();
    const turnBase = { pin: publication.txId, instanceId, askerAddress: userKey.address, seq: 0 };
    const right = { registerId, key: userKey, previous: publication.txId };
    const wrong = turnSubmission({ ...turnBase, ...turn }, { ...right, ...draft });
    const { step: _judged, ...hidden } = buildCandidate(parseSubmission(wrong.text), {
      maxTransactionBytes: 524_288,
      requireBoundTxId: false,
    });
    // the proposer of the next docket takes it for a plain transaction, so that it neither refuses nor judges it
    const liar = opened.member(opened.ledger.dockets.length % 4);
    liar.register.pool.add({ ...hidden, exclusivePredecessor: false, replayKey: undefined, addedAtMs: 0 });
    liar.register.wake();
    const plain = await opened.submit(opened.member((opened.ledger.dockets.length + 1) % 4), {
      payload: { plain: 1 },
    });
    await waitFor(() => opened.ledger.sealed.has(plain.txId), { what: 'the seal', deadlineMs: 30_000 });
    expect(opened.ledger.sealed.has(wrong.txId)).toBe(false);
    const valid = turnSubmission(turnBase, { ...right, payload: { valid: 1 } });
    expect(
      (await opened.submitTo(opened.member((opened.ledger.dockets.length + 1) % 4), valid.text)).status,
    ).toBe(200);
    await waitFor(() => opened.ledger.sealed.has(valid.txId), { what: 'the step', deadlineMs: 30_000 });
    expect(opened.ledger.sealed.has(wrong.txId)).toBe(false);
    for (const { register } of opened.members) expect(register.status).toBe('Running');
  });
});

import { expect, test } from 'vitest';
import { type ConsensusType, signBytes } from '#core/ledger/consensus.ts';
import { createGuard, type GuardedMessage } from './fake-signer.ts';

function guarded(type: ConsensusType, docket: string, height = 7): GuardedMessage {
  const hash = docket.repeat(64);
  const message = {
    type,
    networkId: 'test',
    registerId: '0123456789abcdef0123456789abcdef',
    height,
    round: 0,
    polRound: -1,
    docket: { docketHash: hash, merkleRoot: hash, logRoot: hash },
    validatorSetHash: 'e'.repeat(64),
    timestamp: '2026-01-01T00:00:00.000000Z',
  };
  return { message, bytes: signBytes(message) };
}

const refused = expect.objectContaining({ code: 'DOUBLE_SIGN_REFUSED' });

test('a batch may begin with the messages that were signed last, and continues above them', () => {
  const guard = createGuard({ comparesBytes: true });
  const all = [guarded(1, 'a'), guarded(2, 'a'), guarded(3, 'a')];
  guard(all.slice(0, 1));
  guard(all.slice(0, 2));
  guard(all);
  for (const repeated of [all, all.slice(0, 2), all.slice(1), all.slice(2)]) guard(repeated);
});

test('a batch that does not continue above the messages that were signed last is refused', () => {
  const guard = createGuard({ comparesBytes: true });
  guard([guarded(1, 'a'), guarded(3, 'a')]);
  for (const messages of [
    [guarded(1, 'a'), guarded(2, 'a'), guarded(3, 'a')],
    [guarded(1, 'd'), guarded(2, 'd')],
    [guarded(3, 'd')],
    [guarded(1, 'a', 6)],
  ]) {
    expect(() => guard(messages)).toThrow(refused);
  }
});

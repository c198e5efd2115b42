import { encodeBase64 } from '#core/encoding/base64.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import type { Vote, VoteKind } from '../chain/consensus/messages.ts';
import { signable } from '../chain/sealing/sign-bytes.ts';
import type { RegisterState } from '../chain/state/state.ts';
import type { Cluster, Member } from './cluster.ts';
import { testKey } from './keys.ts';
import { registerId } from './world.ts';

export interface ConflictOptions {
  readonly kind?: VoteKind;
  readonly round?: number;
  /** Two hexadecimal characters for each docket that is voted for. */
  readonly fills?: readonly [string, string];
}

/** Two votes of a member for two dockets of its current height, both signed with its key. */
export function conflictingVotes(
  cluster: Cluster,
  equivocator: Member,
  state: RegisterState,
  { kind = 'prevote', round = 0, fills = ['aa', 'bb'] }: ConflictOptions = {},
): readonly [Vote, Vote] {
  const key = testKey(20 + cluster.members.indexOf(equivocator));
  const vote = (fill: string): Vote => {
    const hash = fill.repeat(32);
    const value = { hash, merkleRoot: hash, logRoot: hash };
    const plain = { kind, height: state.height, round, value, timestamp: 't' } as const;
    const signature = encodeBase64(key.sign(signBytes(signable(state, plain, 't'))));
    return { ...plain, validatorId: equivocator.id, signature };
  };
  return [vote(fills[0]), vote(fills[1])];
}

/** Sends both votes to one member. */
export function sendConflictingVotes(
  cluster: Cluster,
  equivocator: Member,
  victim: Member,
  lie: ConflictOptions = {},
): void {
  for (const vote of conflictingVotes(cluster, equivocator, victim.register.state, lie)) {
    victim.engine.peering.receive(equivocator.id, { kind: 'vote', registerId, vote });
  }
}

import { randomBytes } from 'node:crypto';
import type { ConsensusMessage, ConsensusType } from '#core/ledger/consensus.ts';
import type { Wire } from './signer-stream.ts';

const SET = 'e'.repeat(64);
export const timestamp = '2026-11-21T12:00:00.0000000+00:00';

/** A position and a docket of a register. */
export interface Place {
  readonly height: number;
  readonly round: number;
  readonly type: number;
  /** One hex digit that names the docket. */
  readonly docket: string;
}

/** The message at a place. */
export function consensusMessage(
  registerId: string,
  { height, round, type, docket }: Place,
): ConsensusMessage {
  return {
    type: type as ConsensusType,
    networkId: 'acme',
    registerId,
    height,
    round,
    polRound: -1,
    docket: { docketHash: docket.repeat(64), merkleRoot: 'bb'.repeat(32), logRoot: 'cc'.repeat(32) },
    validatorSetHash: SET,
    timestamp,
  };
}

/** The message at a place as the protocol carries it. */
export function wire(registerId: string, place: Place, change: Partial<Wire> = {}): Wire {
  const { docket, height, ...message } = consensusMessage(registerId, place);
  return { ...message, height: BigInt(height), ...docket, ...change } as Wire;
}

/** A new id of a register. */
export function newRegister(): string {
  return randomBytes(16).toString('hex');
}

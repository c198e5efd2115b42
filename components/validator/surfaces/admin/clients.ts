import { z } from 'zod';
import type { ModeCommand, ModeOutcome } from '../../chain/sealing/modes.ts';
import { type Connections, peerTimeoutMs } from '../../network/peers/connections.ts';

/** Changes the mode of registers at other validators. */
export interface ModeClient {
  /** Starts, stops, pauses or resumes a register at the validator in the name of a system administrator. */
  act(validatorId: string, request: PeerModeRequest): Promise<ModeOutcome>;
}

interface PeerModeRequest {
  readonly registerId: string;
  readonly act: ModeCommand;
  /** The system administrator's access token: no validator may stop another one by itself. */
  readonly subjectToken: string;
}

const outcomeSchema = z.object({ status: z.string().max(64), changed: z.boolean() });

export function createModeClient(connections: Pick<Connections, 'call'>): ModeClient {
  return {
    act: (validatorId, { registerId, act, subjectToken }) =>
      connections.call(validatorId, async ({ admin }) =>
        outcomeSchema.parse(await admin.act({ registerId, act }, { timeoutMs: peerTimeoutMs, subjectToken })),
      ),
  };
}

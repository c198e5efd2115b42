import { type Connections, peerTimeoutMs } from '../../network/peers/connections.ts';
import { type HeldEvidence, parseHeldEvidence } from './wire.ts';

/** Reads the evidence of other validators. */
export interface EvidenceClient {
  /** The validator's evidence for a register, unverified. */
  evidence(validatorId: string, registerId: string): Promise<readonly HeldEvidence[]>;
}

export function createEvidenceClient(connections: Pick<Connections, 'call'>): EvidenceClient {
  return {
    evidence: (validatorId, registerId) =>
      connections.call(validatorId, async ({ admin }) =>
        parseHeldEvidence(await admin.listEvidence({ registerId }, { timeoutMs: peerTimeoutMs })),
      ),
  };
}

import { type Connections, peerTimeoutMs } from '../../network/peers/connections.ts';
import type { BuildRequest, BuiltDocket } from './build.ts';
import type { WaitingPage, WaitingWindow } from './waiting.ts';
import { builtOf, waitingOf } from './wire.ts';

/** The previews of other validators, authorised by the caller's token. */
export interface PreviewClient {
  /** The validator's waiting transactions of a register. */
  listWaiting(validatorId: string, request: SubjectRequest & WaitingWindow): Promise<WaitingPage>;
  /** The docket that the validator would propose. */
  buildDocket(validatorId: string, request: SubjectRequest & BuildRequest): Promise<BuiltDocket>;
}

/** A request about a register, with the caller's token. */
interface SubjectRequest {
  readonly registerId: string;
  readonly subjectToken: string;
}

/** The upper bound of a vote, with time for the answer. */
const sealTimeoutMs = 32_000;

export function createPreviewClient(connections: Pick<Connections, 'call'>): PreviewClient {
  return {
    listWaiting: (validatorId, { subjectToken, ...request }) =>
      connections.call(validatorId, async ({ admin }) =>
        waitingOf(await admin.listWaiting(request, { timeoutMs: peerTimeoutMs, subjectToken })),
      ),
    buildDocket: (validatorId, { subjectToken, ...request }) => {
      const timeoutMs = request.seal ? sealTimeoutMs : peerTimeoutMs;
      return connections.call(validatorId, async ({ admin }) =>
        builtOf(await admin.buildDocket(request, { timeoutMs, subjectToken })),
      );
    },
  };
}

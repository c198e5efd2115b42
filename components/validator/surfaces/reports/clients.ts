import { type Connections, peerTimeoutMs } from '../../network/peers/connections.ts';
import { assertReport } from './parse.ts';
import type { ValidatorReport } from './report.ts';
import { reportOf } from './wire.ts';

/** Reads the reports of other validators. */
export interface ReportClient {
  /** @param registerId empty for every register */
  report(validatorId: string, registerId: string): Promise<ValidatorReport>;
}

export function createReportClient(connections: Pick<Connections, 'call'>): ReportClient {
  return {
    report: (validatorId, registerId) =>
      connections.call(validatorId, async ({ admin }) =>
        assertReport(reportOf(await admin.getStatus({ registerId }, { timeoutMs: peerTimeoutMs }))),
      ),
  };
}

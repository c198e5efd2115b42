import type { Directory } from '../../network/peers/directory.ts';
import type { ReportClient } from './clients.ts';
import type { ValidatorReport } from './report.ts';

export interface CollectReportsDeps {
  readonly validatorId: string;
  /** The report of this validator. @param registerId empty for every register */
  report(registerId: string): ValidatorReport;
  readonly directory: Pick<Directory, 'all'>;
  readonly peerClients: ReportClient;
}

/** One validator and its report. */
export interface CollectedReport {
  readonly validatorId: string;
  /** Undefined when it could not be reached. */
  readonly report: ValidatorReport | undefined;
}

/** Upper bound of validators that one request contacts. */
const maxValidators = 200;

/** Ids of all validators of the installation and of all members of the local registers. Sorted; never throws. */
export function listValidators(deps: Omit<CollectReportsDeps, 'peerClients'>): Promise<readonly string[]> {
  return idsOf(deps, deps.report(''));
}

/**
 * Requests a report from every validator of the installation and every member of the local registers, concurrently. The
 * result contains unreachable validators too. Sorted by id; never throws.
 * @param registerId empty for every register
 */
export async function collectReports(
  deps: CollectReportsDeps,
  registerId: string,
): Promise<readonly CollectedReport[]> {
  const own = deps.report(registerId);
  const ids = await idsOf(deps, own);
  return Promise.all(
    ids.map(async (validatorId) => ({
      validatorId,
      report: validatorId === deps.validatorId ? own : await reportOf(deps, validatorId, registerId),
    })),
  );
}

async function idsOf(
  deps: Pick<CollectReportsDeps, 'validatorId' | 'directory'>,
  own: ValidatorReport,
): Promise<readonly string[]> {
  const announced = await deps.directory.all();
  const known = new Set([
    deps.validatorId,
    ...own.registers.flatMap(({ members }) => members),
    ...announced.map((entry) => entry.validatorId),
  ]);
  return [...known].slice(0, maxValidators).toSorted();
}

async function reportOf(
  deps: CollectReportsDeps,
  validatorId: string,
  registerId: string,
): Promise<ValidatorReport | undefined> {
  try {
    const report = await deps.peerClients.report(validatorId, registerId);
    return report.validatorId === validatorId ? report : undefined;
  } catch {
    return undefined;
  }
}

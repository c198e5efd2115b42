import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { startJob } from '#kit/clock/jobs.ts';
import type { Endpoint } from '#kit/config/config.ts';
import type { Cleanup, Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Logger } from '#kit/log/log.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { AuditService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';

/** A refusal by a service, for the audit log of an organisation. */
export interface Refused {
  readonly organizationId: string;
  readonly action: string;
  readonly reason: string;
  readonly resourceType: string;
  readonly resourceId: string;
  /** Empty for no particular person. */
  readonly platformUserId: string;
}

/** Equal refusals within one minute, with their count. */
export interface GatheredRefusal extends Refused {
  readonly occurredAtMs: number;
  readonly occurrences: number;
}

interface RefusalLogOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Reports at most `mostAtOnce` refusals to the tenant service. */
  readonly report: (gathered: readonly GatheredRefusal[]) => Promise<void>;
}

export const mostAtOnce = 500;
/** Bound of pending refusals while the tenant service is unavailable; the excess is only logged. */
const maxPending = 10_000;
const minuteMs = 60_000;

/**
 * Aggregates refusals by minute, so that a client that repeats a refused request costs one call and one row a minute,
 * and reports them in the background. Refusals that cannot be reported are kept for the next flush; requests never
 * wait.
 */
export class RefusalLog {
  readonly #options: RefusalLogOptions;
  #gathered = new Map<string, GatheredRefusal>();
  #isFailing = false;

  constructor(options: RefusalLogOptions) {
    this.#options = options;
  }

  count(refused: Refused): void {
    this.#add({ ...refused, occurredAtMs: this.#options.clock.nowMs(), occurrences: 1 });
  }

  /** Reports the pending refusals; never rejects. */
  async flush(): Promise<void> {
    const gathered = [...this.#gathered.values()];
    this.#gathered = new Map();
    for (let from = 0; from < gathered.length; from += mostAtOnce) {
      const some = gathered.slice(from, from + mostAtOnce);
      const isDone = await this.#report(some);
      if (isDone) continue;
      for (const each of gathered.slice(from)) this.#add(each);
      return;
    }
  }

  /** False when the report must be retried. */
  async #report(some: readonly GatheredRefusal[]): Promise<boolean> {
    const { log, report } = this.#options;
    try {
      await report(some);
      if (this.#isFailing) log.info('refusals are reported again');
      this.#isFailing = false;
      return true;
    } catch (error) {
      if (isAppError(error, 'invalid') || isAppError(error, 'forbidden')) {
        log.error(
          { err: error, refusals: some },
          'the tenant service rejects the reported refusals; they are not in its audit log',
        );
        return true;
      }
      if (!this.#isFailing)
        log.warn(
          { err: error },
          'refusals cannot be reported to the tenant service now; they are kept and retried',
        );
      this.#isFailing = true;
      return false;
    }
  }

  #add(one: GatheredRefusal): void {
    const { organizationId, action, reason, resourceType, resourceId, platformUserId, occurredAtMs } = one;
    const minute = Math.floor(occurredAtMs / minuteMs);
    const refused = [organizationId, action, reason, resourceType, resourceId, platformUserId];
    const key = JSON.stringify([...refused, minute]);
    const pending = this.#gathered.get(key);
    if (pending === undefined && this.#gathered.size >= maxPending) {
      this.#options.log.warn(
        { refused: one },
        'a refusal is not reported to the audit log: too many are pending',
      );
      return;
    }
    const occurrences = one.occurrences + (pending?.occurrences ?? 0);
    this.#gathered.set(key, { ...(pending ?? one), occurrences });
  }
}

const reportTimeoutMs = 5_000;
const reportEveryMs = 1_000;

interface ReportingOptions {
  /** The tenant service, gRPC. */
  readonly address: Endpoint;
  readonly runtime: Runtime;
  readonly workload: Workload;
  /** The token of this service; it needs the scope audit:write. */
  readonly token: () => Promise<string>;
  readonly cleanup: Cleanup;
}

/** Reports refusals to the audit logs of the tenant service, once a second and once more before the process stops. */
export function startRefusalLog({ address, cleanup, ...options }: ReportingOptions): RefusalLog {
  const { runtime, workload } = options;
  const expect = serviceSpiffeId(workload.trustDomain, 'service-tenant');
  const client = createRpcClient(AuditService, { ...options, address, expect });
  cleanup.add('audit', () => client.close());
  const refusals = new RefusalLog({
    clock: runtime.clock,
    log: runtime.log,
    report: async (gathered) => {
      const wire = gathered.map((one) => ({ ...one, occurredAtMs: BigInt(one.occurredAtMs) }));
      await client.reportRefusals({ refusals: wire }, { timeoutMs: reportTimeoutMs });
    },
  });
  const run = () => refusals.flush();
  const reports = startJob({ name: 'refusal-reports', everyMs: reportEveryMs, run }, runtime);
  cleanup.add('refusals', async () => {
    await reports.stop();
    await refusals.flush();
  });
  return refusals;
}

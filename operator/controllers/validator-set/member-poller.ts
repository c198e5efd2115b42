import type { Cancel, Timing } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Installation } from '../../api/installation.ts';
import { hashOf } from '../../kube/compare.ts';
import type { MemberFacts, MemberReport, RegisterReport } from '../../plan/validator-set/facts.ts';
import type { Members } from '../../platform/validators.ts';

/** A pod that is polled. */
interface PolledPod {
  readonly uid: string;
  readonly name: string;
  readonly address: string;
  /** A change of readiness causes an immediate poll. */
  readonly isReady: boolean;
}

interface MemberPollerOptions {
  readonly members: Members;
  readonly timing: Timing;
  readonly log: Logger;
  /** Called with the key of a set when the reports of its members have changed. */
  readonly onChange: (key: string) => void;
}

interface PollResult {
  readonly report?: MemberReport;
  readonly answeredAtMs?: number;
  /** Since when it has reported these heights, by register id. */
  readonly heightSinceMs?: ReadonlyMap<string, number>;
  /** The last query was not answered. */
  readonly isSilent?: boolean;
  /** Whether the pod was ready at the query. */
  readonly wasReady?: boolean;
}

interface PolledSet {
  installation: Installation;
  /** Queries of single pods outside the rounds. */
  readonly separatePolls: Set<string>;
  pods: readonly PolledPod[];
  answers: ReadonlyMap<string, PollResult>;
  unreachable: string | undefined;
  round: Promise<void> | undefined;
  cancel: Cancel | undefined;
  isEnded: boolean;
}

/** Pause between two rounds. With the timeout of 5 s a silent member is detected within 8 s. */
const pauseMs = 3_000;

/**
 * Polls the members of every set in rounds, so that reconciles need not wait for silent members, except for a new set and
 * for proofs before a replacement. A report is valid until the next round ends; a member that did not answer in it is
 * unknown.
 */
export class MemberPoller {
  readonly #options: MemberPollerOptions;
  readonly #sets = new Map<string, PolledSet>();

  constructor(options: MemberPollerOptions) {
    this.#options = options;
  }

  /**
   * Polls these pods of a set from now on.
   * @returns whether the set was not polled before, so that nothing is known of its members
   */
  poll(key: string, installation: Installation, pods: readonly PolledPod[]): boolean {
    const before = this.#sets.get(key);
    if (before !== undefined) {
      const changedPods = pods.filter(
        ({ uid, isReady }) => !before.pods.some((each) => each.uid === uid && each.isReady === isReady),
      );
      before.installation = installation;
      before.pods = pods;
      if (changedPods.length > 0) this.#schedule(key, before, 0);
      // a running round may wait for a silent pod, so ready pods are polled separately
      for (const pod of changedPods) if (pod.isReady) void this.#pollSeparately(key, before, pod);
      return false;
    }
    const polled: PolledSet = {
      installation,
      separatePolls: new Set(),
      pods,
      answers: new Map(),
      unreachable: undefined,
      round: undefined,
      cancel: undefined,
      isEnded: false,
    };
    this.#sets.set(key, polled);
    this.#schedule(key, polled, 0);
    return true;
  }

  /** The last result of a pod; without a report when it was silent or was not queried since it became ready. */
  pollResultOf(
    key: string,
    { uid, isReady }: Pick<PolledPod, 'uid' | 'isReady'>,
  ): Pick<MemberFacts, 'report' | 'answeredAtMs' | 'isUnqueried' | 'heightSinceMs'> {
    const { report, answeredAtMs, wasReady, heightSinceMs } = this.#sets.get(key)?.answers.get(uid) ?? {};
    const isUnqueried = report === undefined && isReady && wasReady !== true;
    return {
      ...(report === undefined ? {} : { report, heightSinceMs }),
      ...(answeredAtMs === undefined ? {} : { answeredAtMs }),
      ...(isUnqueried ? { isUnqueried } : {}),
    };
  }

  /** Why no member of a set can be queried. */
  unreachableReason(key: string): string | undefined {
    return this.#sets.get(key)?.unreachable;
  }

  /** Queries every member of a set; resolves when all have answered or timed out after 5 s. */
  async refresh(key: string): Promise<void> {
    const polled = this.#sets.get(key);
    if (polled === undefined) return;
    // reports of a running round may be older than this request
    await polled.round;
    await this.#round(key, polled);
  }

  forget(key: string): void {
    const polled = this.#sets.get(key);
    if (polled === undefined) return;
    polled.isEnded = true;
    polled.cancel?.();
    this.#sets.delete(key);
  }

  stop(): void {
    for (const key of [...this.#sets.keys()]) this.forget(key);
  }

  #schedule(key: string, polled: PolledSet, ms: number): void {
    polled.cancel?.();
    polled.cancel = this.#options.timing.after(ms, () => void this.#round(key, polled));
  }

  #round(key: string, polled: PolledSet): Promise<void> {
    polled.round ??= this.#pollOnce(key, polled).finally(() => {
      polled.round = undefined;
      if (!polled.isEnded) this.#schedule(key, polled, pauseMs);
    });
    return polled.round;
  }

  async #pollOnce(key: string, polled: PolledSet): Promise<void> {
    const { members, log } = this.#options;
    const { installation, pods } = polled;
    const before = fingerprint(polled);
    try {
      await members.ready(installation);
      polled.unreachable = undefined;
    } catch (error) {
      polled.unreachable = error instanceof Error ? error.message : 'members cannot be queried';
      log.debug({ err: error, subject: key }, 'Members cannot be queried');
    }
    const known = polled.answers;
    const isSilent = ({ uid }: PolledPod) => known.get(uid)?.isSilent === true;
    for (const pod of pods.filter(isSilent)) void this.#pollSeparately(key, polled, pod);
    const results = new Map<string, PollResult>();
    const query = async (pod: PolledPod) => results.set(pod.uid, await this.#query(polled, pod));
    await Promise.all(pods.filter((pod) => !isSilent(pod)).map(query));
    const latestResult = ({ uid }: PolledPod): PollResult => {
      const [asked, now] = [results.get(uid), polled.answers.get(uid)];
      // a pod that became ready meanwhile was queried separately
      const isLater = now !== known.get(uid) && now?.wasReady === true && asked?.wasReady !== true;
      return (isLater ? now : (asked ?? now)) ?? {};
    };
    polled.answers = new Map(polled.pods.map((pod) => [pod.uid, latestResult(pod)]));
    if (!polled.isEnded && fingerprint(polled) !== before) this.#options.onChange(key);
  }

  /**
   * Queries a silent or newly ready member independently of the rounds, one query at a time. Otherwise the timeout of one
   * member would delay the reports of all others.
   */
  async #pollSeparately(key: string, polled: PolledSet, pod: PolledPod): Promise<void> {
    const pollKey = `${pod.uid} ${pod.isReady}`;
    if (polled.separatePolls.has(pollKey)) return;
    polled.separatePolls.add(pollKey);
    const known = polled.answers.get(pod.uid);
    const answer = await this.#query(polled, pod);
    polled.separatePolls.delete(pollKey);
    if (polled.isEnded || !polled.pods.some(({ uid }) => uid === pod.uid)) return;
    // a later query was answered meanwhile
    if (answer.report === undefined && polled.answers.get(pod.uid) !== known) return;
    const before = fingerprint(polled);
    polled.answers = new Map(polled.answers).set(pod.uid, answer);
    if (fingerprint(polled) !== before) this.#options.onChange(key);
  }

  async #query(polled: PolledSet, pod: PolledPod): Promise<PollResult> {
    const { members, timing, log } = this.#options;
    const before = polled.answers.get(pod.uid);
    const last = before?.answeredAtMs === undefined ? {} : { answeredAtMs: before.answeredAtMs };
    if (polled.unreachable !== undefined) return last;
    try {
      const report = await members.queryReport(polled.installation, pod);
      const answeredAtMs = timing.nowMs();
      const heightSinceMs = heightsSince(report, before, answeredAtMs);
      return { report, answeredAtMs, heightSinceMs, wasReady: pod.isReady };
    } catch (error) {
      log.debug({ err: error, subject: pod.name }, 'Member did not answer');
      return { ...last, isSilent: true, wasReady: pod.isReady };
    }
  }
}

function heightsSince(
  report: MemberReport,
  before: PollResult | undefined,
  nowMs: number,
): Map<string, number> {
  const known = new Map(before?.report?.registers.map(({ registerId, height }) => [registerId, height]));
  const since = ({ registerId, height }: RegisterReport) =>
    known.get(registerId) === height ? (before?.heightSinceMs?.get(registerId) ?? nowMs) : nowMs;
  return new Map(report.registers.map((each) => [each.registerId, since(each)]));
}

/** What makes a difference at once. Heights grow all the time and are read when the set is looked at anyway. */
function fingerprint({ answers, unreachable }: PolledSet): string {
  const reports = [...answers].map(([uid, { report, wasReady = false }]) => {
    if (report === undefined) return [uid, wasReady];
    const { drain, conditions, version, registers } = report;
    const places = registers.map(
      ({ registerId, status, membership, isMember, members, quorum, behind, evidence }) => [
        registerId,
        status,
        membership,
        isMember,
        members,
        quorum,
        behind === 0,
        evidence.length,
      ],
    );
    return [uid, drain.state, conditions, version, places];
  });
  return hashOf([unreachable, reports]);
}

import type { Logger } from '#kit/log/log.ts';
import { hashOf } from '../../kube/compare.ts';
import type { Cancel, Timing } from '../../kube/time.ts';
import type { MemberFacts, MemberReport, RegisterReport } from '../../plan/validator-set/facts.ts';
import type { Installation } from '../../platform/installation.ts';
import type { Members } from '../../platform/validators.ts';

/** A pod that is asked. */
export interface Asked {
  readonly uid: string;
  readonly name: string;
  readonly address: string;
  /** A turn of it is a reason to ask at once. */
  readonly isReady: boolean;
}

export interface MemberWatchOptions {
  readonly members: Members;
  readonly timing: Timing;
  readonly log: Logger;
  /** Called with the key of a set when its members say something new. */
  readonly onNews: (key: string) => void;
}

interface Answer {
  readonly report?: MemberReport;
  readonly answeredAtMs?: number;
  /** Since when it has said these heights, by register id. */
  readonly heightSinceMs?: ReadonlyMap<string, number>;
  /** It was asked and did not answer. */
  readonly isSilent?: boolean;
  /** It was ready when it was asked. */
  readonly wasReady?: boolean;
}

interface Followed {
  installation: Installation;
  /** Questions to single pods beside the rounds. */
  readonly asking: Set<string>;
  pods: readonly Asked[];
  answers: ReadonlyMap<string, Answer>;
  blind: string | undefined;
  round: Promise<void> | undefined;
  cancel: Cancel | undefined;
  isEnded: boolean;
}

/** Pause between two rounds; with 5 s for an answer a member that falls silent is noticed within 8 s. */
const PAUSE_MS = 3_000;

/**
 * Asks the members of every set again and again, so that a reconcile waits for one that is silent when a set is new to
 * this process, and later only for proofs. An answer counts until the next round is over: who did not answer in it is
 * unknown.
 */
export class MemberWatch {
  readonly #options: MemberWatchOptions;
  readonly #sets = new Map<string, Followed>();

  constructor(options: MemberWatchOptions) {
    this.#options = options;
  }

  /**
   * Follows these pods of a set from now on.
   * @returns whether the set was not followed before: nothing is known of its members then
   */
  follow(key: string, installation: Installation, pods: readonly Asked[]): boolean {
    const before = this.#sets.get(key);
    if (before !== undefined) {
      const turned = pods.filter(
        ({ uid, isReady }) => !before.pods.some((each) => each.uid === uid && each.isReady === isReady),
      );
      before.installation = installation;
      before.pods = pods;
      if (turned.length > 0) this.#soon(key, before, 0);
      // a round may wait for another one that is silent
      for (const pod of turned) if (pod.isReady) void this.#askBeside(key, before, pod);
      return false;
    }
    const followed: Followed = {
      installation,
      asking: new Set(),
      pods,
      answers: new Map(),
      blind: undefined,
      round: undefined,
      cancel: undefined,
      isEnded: false,
    };
    this.#sets.set(key, followed);
    this.#soon(key, followed, 0);
    return true;
  }

  /** What a pod said last; without a report when it was silent, or was not asked since it became ready. */
  answerOf(
    key: string,
    { uid, isReady }: Pick<Asked, 'uid' | 'isReady'>,
  ): Pick<MemberFacts, 'report' | 'answeredAtMs' | 'isUnasked' | 'heightSinceMs'> {
    const { report, answeredAtMs, wasReady, heightSinceMs } = this.#sets.get(key)?.answers.get(uid) ?? {};
    const isUnasked = report === undefined && isReady && wasReady !== true;
    return {
      ...(report === undefined ? {} : { report, heightSinceMs }),
      ...(answeredAtMs === undefined ? {} : { answeredAtMs }),
      ...(isUnasked ? { isUnasked } : {}),
    };
  }

  /** Why no member of a set can be asked at all. */
  blindOf(key: string): string | undefined {
    return this.#sets.get(key)?.blind;
  }

  /** Asks every member of a set now; resolves when all have answered or were silent for 5 s. */
  async refresh(key: string): Promise<void> {
    const followed = this.#sets.get(key);
    if (followed === undefined) return;
    // answers to a round that began earlier may be older than the question
    await followed.round;
    await this.#round(key, followed);
  }

  forget(key: string): void {
    const followed = this.#sets.get(key);
    if (followed === undefined) return;
    followed.isEnded = true;
    followed.cancel?.();
    this.#sets.delete(key);
  }

  stop(): void {
    for (const key of [...this.#sets.keys()]) this.forget(key);
  }

  #soon(key: string, followed: Followed, ms: number): void {
    followed.cancel?.();
    followed.cancel = this.#options.timing.after(ms, () => void this.#round(key, followed));
  }

  #round(key: string, followed: Followed): Promise<void> {
    followed.round ??= this.#ask(key, followed).finally(() => {
      followed.round = undefined;
      if (!followed.isEnded) this.#soon(key, followed, PAUSE_MS);
    });
    return followed.round;
  }

  async #ask(key: string, followed: Followed): Promise<void> {
    const { members, log } = this.#options;
    const { installation, pods } = followed;
    const before = newsOf(followed);
    try {
      await members.ready(installation);
      followed.blind = undefined;
    } catch (error) {
      followed.blind = error instanceof Error ? error.message : 'members cannot be asked';
      log.debug({ err: error, subject: key }, 'Members cannot be asked');
    }
    const known = followed.answers;
    const isSilent = ({ uid }: Asked) => known.get(uid)?.isSilent === true;
    for (const pod of pods.filter(isSilent)) void this.#askBeside(key, followed, pod);
    const heard = new Map<string, Answer>();
    const hear = async (pod: Asked) => heard.set(pod.uid, await this.#answer(followed, pod));
    await Promise.all(pods.filter((pod) => !isSilent(pod)).map(hear));
    const latest = ({ uid }: Asked): Answer => {
      const [asked, now] = [heard.get(uid), followed.answers.get(uid)];
      // who became ready meanwhile was asked again beside the round
      const isLater = now !== known.get(uid) && now?.wasReady === true && asked?.wasReady !== true;
      return (isLater ? now : (asked ?? now)) ?? {};
    };
    followed.answers = new Map(followed.pods.map((pod) => [pod.uid, latest(pod)]));
    if (!followed.isEnded && newsOf(followed) !== before) this.#options.onNews(key);
  }

  /**
   * Asks a member that was silent or has just become ready, once at a time. No round waits for it, and it waits for no
   * round: the loss of one would hide for seconds what becomes of the others.
   */
  async #askBeside(key: string, followed: Followed, pod: Asked): Promise<void> {
    const question = `${pod.uid} ${pod.isReady}`;
    if (followed.asking.has(question)) return;
    followed.asking.add(question);
    const known = followed.answers.get(pod.uid);
    const answer = await this.#answer(followed, pod);
    followed.asking.delete(question);
    if (followed.isEnded || !followed.pods.some(({ uid }) => uid === pod.uid)) return;
    // another question that began later was answered
    if (answer.report === undefined && followed.answers.get(pod.uid) !== known) return;
    const before = newsOf(followed);
    followed.answers = new Map(followed.answers).set(pod.uid, answer);
    if (newsOf(followed) !== before) this.#options.onNews(key);
  }

  async #answer(followed: Followed, pod: Asked): Promise<Answer> {
    const { members, timing, log } = this.#options;
    const before = followed.answers.get(pod.uid);
    const last = before?.answeredAtMs === undefined ? {} : { answeredAtMs: before.answeredAtMs };
    if (followed.blind !== undefined) return last;
    try {
      const report = await members.ask(followed.installation, pod);
      const answeredAtMs = timing.nowMs();
      const heightSinceMs = sinceWhen(report, before, answeredAtMs);
      return { report, answeredAtMs, heightSinceMs, wasReady: pod.isReady };
    } catch (error) {
      log.debug({ err: error, subject: pod.name }, 'Member did not answer');
      return { ...last, isSilent: true, wasReady: pod.isReady };
    }
  }
}

function sinceWhen(report: MemberReport, before: Answer | undefined, nowMs: number): Map<string, number> {
  const known = new Map(before?.report?.registers.map(({ registerId, height }) => [registerId, height]));
  const since = ({ registerId, height }: RegisterReport) =>
    known.get(registerId) === height ? (before?.heightSinceMs?.get(registerId) ?? nowMs) : nowMs;
  return new Map(report.registers.map((each) => [each.registerId, since(each)]));
}

/** What makes a difference at once. Heights grow all the time and are read when the set is looked at anyway. */
function newsOf({ answers, blind }: Followed): string {
  const said = [...answers].map(([uid, { report, wasReady = false }]) => {
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
  return hashOf([blind, said]);
}

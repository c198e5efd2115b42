import { AppError } from '#core/errors/errors.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { validatorId } from '../../api/names.ts';
import type { MemberReport, RegisterReport } from '../../plan/validator-set/facts.ts';
import type { Principals } from '../principals.ts';
import type { Members } from '../validators.ts';

interface FakeRegister {
  /** Validator ids. */
  members: string[];
  height: number;
}

/** Fake members whose state a test controls. */
export class FakeMembers implements Members, Principals {
  readonly registers = new Map<string, FakeRegister>();
  /** Names of pods that do not answer. */
  readonly silent = new Set<string>();
  /** Names of pods whose answers are delayed by a promise. */
  readonly held = new Map<string, Promise<void>>();
  readonly drains = new Map<string, 'None' | 'Draining' | 'Drained'>();
  /** Dockets that a pod is behind. */
  readonly behind = new Map<string, number>();
  /** Root of a pod with another history. */
  readonly roots = new Map<string, string>();
  readonly equivocating = new Set<string>();
  proposer: string | undefined;
  /** Client ids with a principal. */
  readonly principals = new Set<string>();
  /** Client ids whose keys were destroyed. */
  readonly keyless = new Set<string>();
  version = '0.1.0';
  /** Error when no member can be queried. */
  fault: AppError | undefined;

  async ready(): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
  }

  async queryReport(_: unknown, { name }: { readonly name: string }): Promise<MemberReport> {
    await this.held.get(name);
    this.#listen(name);
    return {
      validatorId: validatorId(name),
      publicKey: `key of ${name}`,
      version: this.version,
      protocolVersion: 1,
      drain: { state: this.drains.get(name) ?? 'None', since: null },
      conditions: [],
      heard: [],
      registers: [...this.registers].map(([registerId, register]) =>
        this.#report(name, registerId, register),
      ),
    };
  }

  async drain(_: unknown, { name }: { readonly name: string }): Promise<{ readonly state: string }> {
    this.#listen(name);
    this.drains.set(name, 'Drained');
    return { state: 'Drained' };
  }

  async undrain(_: unknown, { name }: { readonly name: string }): Promise<void> {
    this.#listen(name);
    this.drains.delete(name);
  }

  async upsert(_: unknown, clientId: string): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
    this.principals.add(clientId);
  }

  async destroyKeys(_: unknown, clientId: string): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
    this.keyless.add(clientId);
  }

  async revoke(_: unknown, clientId: string): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
    this.principals.delete(clientId);
  }

  stop(): void {}

  #listen(name: string): void {
    if (!this.silent.has(name)) return;
    throw new AppError('timeout', 'SERVICE_UNREACHABLE', `${name} does not answer`);
  }

  #report(name: string, registerId: string, { members, height }: FakeRegister): RegisterReport {
    const isMember = members.includes(validatorId(name));
    const behind = this.behind.get(name) ?? 0;
    return {
      registerId,
      status: 'Running',
      membership: isMember ? 'Active' : 'None',
      isMember,
      height: height - behind,
      round: 0,
      role: isMember ? 'voter' : 'observer',
      isProposer: this.proposer === name,
      quorum: quorum(members.length),
      members: [...members],
      behind,
      roots: [{ height: 1, root: this.roots.get(name) ?? 'root' }],
      evidence: [...this.equivocating].map((each) => ({ kind: 'vote', validatorIds: [validatorId(each)] })),
    };
  }
}

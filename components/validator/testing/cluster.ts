import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { type Clock, systemClock } from '#kit/clock/clock.ts';
import { type TestRuntime, testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { RegisterChain } from '../chain/sealing/register-chain.ts';
import type { Storage } from '../disk/volume/storage.ts';
import { type Engine, openEngine } from '../engine.ts';
import type { Answer } from '../intake/admission/answer.ts';
import type { Transport } from '../network/transport/transport.ts';
import { answerSubmission } from '../surfaces/submissions/answer-submission.ts';
import { testBounds, testKeyFilters } from './bounds.ts';
import { type FakeLedger, fakeLedger } from './fake-ledger.ts';
import { type FakeSigner, fakeSigner } from './fake-signer.ts';
import { testKey } from './keys.ts';
import { MemoryNetwork } from './memory-network.ts';
import { type Draft, genesisSubmission, type SignedSubmission, signedSubmission } from './submissions.ts';
import { ownerKey, registerId, systemKey, userKey } from './world.ts';

/** Short timers, so that tests do not wait long. */
export const quickPolicy = { leaderElection: { heartbeatIntervalMs: 100, leaderTimeoutMs: 300 } };

/** One member: its validator while it is open, and its persistent parts. */
export class Member {
  readonly id: string;
  readonly signer: FakeSigner;
  readonly runtime: TestRuntime;
  directory = '';
  opened: Engine | undefined;

  constructor(id: string, seed: number, clock: Clock) {
    this.id = id;
    this.runtime = testRuntime('validator', { level: 'warn', clock });
    this.signer = fakeSigner(testKey(seed), id, testKey(seed + 100));
  }

  get engine(): Engine {
    if (this.opened === undefined) throw new Error(`${this.id} is not open`);
    return this.opened;
  }

  get register(): RegisterChain {
    const register = this.engine.registers.get(registerId);
    if (register === undefined) throw new Error(`the register has not begun at ${this.id}`);
    return register;
  }

  /** Messages that were logged. */
  get messages(): string[] {
    return this.runtime.lines.map((line) => String(line['msg']));
  }
}

/** Several validators of one register, a register service and a network in memory. */
export class Cluster {
  readonly ledger: FakeLedger = fakeLedger(testInstallation);
  readonly network = new MemoryNetwork();
  readonly members: readonly Member[];
  readonly #verifier = createVerifier(nodeEd25519());
  readonly #clock: Clock;
  /** Log size of members that are opened from now on. */
  logSize = { segmentBytes: 1024 * 1024, retainBytes: 16 * 1024 * 1024 };
  /** The transport of a member; the network's unless a test replaces it. */
  transportOf: (member: Member) => Transport = (member) => this.network.transport(member.id);

  /** The storage of a member; the local file system unless a test replaces it. */
  storageOf: (member: Member) => Storage | undefined = () => undefined;

  constructor(size: number, clock: Clock = systemClock()) {
    this.#clock = clock;
    this.members = Array.from(
      { length: size },
      (_, index) => new Member(`validator-${index}`, 20 + index, clock),
    );
  }

  member(index: number): Member {
    const member = this.members[index];
    if (member === undefined) throw new Error(`there is no member ${index}`);
    return member;
  }

  async open(): Promise<this> {
    for (const member of this.members) await this.start(member);
    return this;
  }

  async start(member: Member): Promise<void> {
    if (member.directory === '') member.directory = await mkdtemp(join(tmpdir(), 'validator-'));
    member.opened = await openEngine({
      runtime: member.runtime,
      validatorId: member.id,
      version: 'test',
      directory: member.directory,
      bounds: testBounds,
      keyFilters: testKeyFilters,
      ...this.logSize,
      signer: member.signer,
      ledger: this.ledger,
      transport: this.transportOf(member),
      verifier: this.#verifier,
      verify: async (items) => items.map((item) => this.#verifier.verifyDigest(item)),
      systemKey: async () => `ED25519:${systemKey.publicKey}`,
      environment: { storage: this.storageOf(member) },
    });
    this.network.join(member.id, member.opened.peering);
  }

  async stop(member: Member): Promise<void> {
    this.network.leave(member.id);
    await member.opened?.stop();
    member.opened = undefined;
  }

  async remove(): Promise<void> {
    this.network.close();
    for (const member of this.members) {
      await this.stop(member);
      if (member.directory !== '') await rm(member.directory, { recursive: true, force: true });
    }
  }

  submitTo(member: Member, text: string, isRegisterService = false): Promise<Answer> {
    const options = { admission: member.engine.admission, nowMs: () => this.#clock.nowMs() };
    return answerSubmission(options, text, { isRegisterService });
  }

  sign(draft: Partial<Draft> = {}): SignedSubmission {
    return signedSubmission({ registerId, key: userKey, createdAtMs: this.#clock.nowMs(), ...draft });
  }

  /** Begins the register at the open members among the given ones, and waits for docket 0. */
  async begin(policy: object = quickPolicy, at: readonly Member[] = this.members): Promise<void> {
    const { text } = genesisSubmission({
      registerId,
      owner: ownerKey,
      system: systemKey,
      validators: this.members.map(({ id, signer }, index) => ({
        validatorId: id,
        key: { ...testKey(20 + index), publicKey: signer.key.publicKey },
      })),
      createdAtMs: this.#clock.nowMs(),
      policy,
    });
    for (const member of at) {
      if (member.opened === undefined) continue;
      const answer = await this.submitTo(member, text, true);
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    }
    await this.sealed(1);
  }

  /** Submits to a member without waiting for the seal. */
  async submit(member: Member, draft: Partial<Draft> = {}): Promise<SignedSubmission> {
    const signed = this.sign(draft);
    const answer = await this.submitTo(member, signed.text);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    return signed;
  }

  /** Waits until the register service holds that many transactions. */
  async sealed(count: number, deadlineMs = 20_000): Promise<void> {
    const what = `${count} sealed transactions`;
    await waitFor(() => this.ledger.sealed.size >= count, { what, deadlineMs });
  }

  /** Waits until every open member has decided exactly the stored dockets. */
  async agreed(deadlineMs = 20_000): Promise<void> {
    const open = this.members.filter((member) => member.opened !== undefined);
    const head = () => this.ledger.dockets.at(-1)?.docket.header;
    await waitFor(
      () =>
        open.every(({ register }) => register.state.height === this.ledger.dockets.length) &&
        open.every(({ register }) => register.state.headHash === head()?.hash),
      { what: 'all members at the same head', deadlineMs },
    );
  }
}

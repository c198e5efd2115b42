import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { EngineOptions } from '../assemble.ts';
import type { RegisterChain } from '../chain/sealing/register-chain.ts';
import { type Engine, openEngine } from '../engine.ts';
import type { Answer } from '../intake/admission/answer.ts';
import type { Transport } from '../network/transport/transport.ts';
import { answerSubmission } from '../surfaces/submissions/answer-submission.ts';
import { testBounds, testKeyFilters } from './bounds.ts';
import { type FakeLedger, fakeLedger } from './fake-ledger.ts';
import { type FakeSigner, fakeSigner } from './fake-signer.ts';
import { testKey } from './keys.ts';
import { type Draft, genesisSubmission, type SignedSubmission, signedSubmission } from './submissions.ts';

export const registerId = '0123456789abcdef0123456789abcdef';
export const systemKey = testKey(9);
export const ownerKey = testKey(1);
export const userKey = testKey(2);
export const validatorKey = testKey(7);

/** The transport of a set with one member. */
const silence: Transport = {
  send: () => {},
  fetchRecords: async () => [],
  fetchCommit: async () => undefined,
};

/** One validator with an in-memory register service and signing component. */
export class World {
  readonly ledger: FakeLedger = fakeLedger(testInstallation);
  readonly signer: FakeSigner = fakeSigner(validatorKey, 'validator-0');
  readonly runtime = testRuntime('validator', { level: 'warn' });
  readonly #verifier = createVerifier(nodeEd25519());
  readonly #overrides: Partial<EngineOptions>;
  #directory = '';
  #signed = 0;
  #engine: Engine | undefined;

  constructor(overrides: Partial<EngineOptions> = {}) {
    this.#overrides = overrides;
  }

  get engine(): Engine {
    if (this.#engine === undefined) throw new Error('the validator is not open');
    return this.#engine;
  }

  get register(): RegisterChain {
    const register = this.engine.registers.get(registerId);
    if (register === undefined) throw new Error('the register has not begun');
    return register;
  }

  get directory(): string {
    return this.#directory;
  }

  async open(): Promise<this> {
    if (this.#directory === '') this.#directory = await mkdtemp(join(tmpdir(), 'validator-'));
    this.#engine = await openEngine({
      runtime: testRuntime('validator', { level: 'warn' }),
      validatorId: 'validator-0',
      directory: this.#directory,
      bounds: testBounds,
      keyFilters: testKeyFilters,
      segmentBytes: 1024 * 1024,
      retainBytes: 16 * 1024 * 1024,
      signer: this.signer,
      ledger: this.ledger,
      transport: silence,
      version: 'test',
      verifier: this.#verifier,
      verify: async (items) => items.map((item) => this.#verifier.verifyDigest(item)),
      systemKey: async () => `ED25519:${systemKey.publicKey}`,
      ...this.#overrides,
    });
    return this;
  }

  async close(): Promise<void> {
    await this.#engine?.stop();
    this.#engine = undefined;
  }

  async remove(): Promise<void> {
    await this.close();
    if (this.#directory !== '') await rm(this.#directory, { recursive: true, force: true });
  }

  submit(text: string, isRegisterService = false): Promise<Answer> {
    const options = { admission: this.engine.admission, nowMs: () => Date.now() };
    return answerSubmission(options, text, { isRegisterService });
  }

  /** Signs a draft; without a payload it gets a unique one. */
  sign(draft: Partial<Draft> = {}): SignedSubmission {
    this.#signed += 1;
    const payload = { note: 'hello', n: this.#signed };
    return signedSubmission({ registerId, key: userKey, createdAtMs: Date.now(), payload, ...draft });
  }

  genesis(policy?: unknown): SignedSubmission {
    return genesisSubmission({
      registerId,
      owner: ownerKey,
      system: systemKey,
      validators: [{ validatorId: 'validator-0', key: validatorKey }],
      createdAtMs: Date.now(),
      policy,
    });
  }

  /** Begins the register and waits for docket 0. */
  async begin(policy?: unknown): Promise<void> {
    const answer = await this.submit(this.genesis(policy).text, true);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    await this.sealed(1);
  }

  /** Waits until the register service holds that many transactions. */
  async sealed(count: number): Promise<void> {
    await waitFor(() => this.ledger.sealed.size >= count, { what: `${count} sealed transactions` });
  }
}

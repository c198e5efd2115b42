import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { type App, createHttpServer } from '#kit/http/http.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { type Deps, mountRoutes } from '../http.ts';
import { Configuration } from '../surfaces/configuration/configuration.ts';
import { createLocalValidator, type LocalValidator } from '../surfaces/reports/local-validator.ts';
import type { Forward } from '../surfaces/submissions/forward.ts';
import { World } from './world.ts';

export const serviceCaller = { kind: 'service', subject: 'a-service' } as Caller;
export const userCaller = {
  kind: 'user',
  tier: 'platform',
  organizationId: 'acme',
  roles: ['User'],
} as Partial<Caller> as Caller;
export const systemAdmin = {
  ...userCaller,
  tier: 'platform',
  organizationId: SYSTEM_ORGANIZATION_ID,
  roles: ['SystemAdmin'],
} as Caller;

/** One validator with its HTTP surface, the caller of the next requests, and fakes of its peers. */
export class TestServer {
  readonly world = new World();
  readonly app: App = createHttpServer({ runtime: testRuntime('validator'), title: 'Validator' });
  readonly subscriptions = { isSubscribed: async (): Promise<boolean> => true };
  /** The registers of each request for subscriptions to several of them. */
  readonly listed: (readonly string[])[] = [];
  /** Fakes for submissions that are forwarded, and for registers that only the register service knows. */
  readonly beyond: { forward: Forward; findRules: Deps['findRules'] } = {
    forward: async () => undefined,
    findRules: async () => undefined,
  };
  /** Answers of other validators; calls without one fail as unavailable. */
  readonly peerClients: Partial<Deps['peerClients']> = {};
  /** Other validators that have announced themselves. */
  readonly announced: string[] = [];
  /** Changes of threads and limits by the configuration. */
  readonly controlled: [string, number][] = [];
  readonly health = { isWell: true };
  caller: Caller = serviceCaller;

  async open(): Promise<void> {
    await this.world.open();
    await this.world.begin();
    this.app.addHook('onRequest', async (request) => {
      request.caller = this.caller;
      request.headers.authorization ??= 'Bearer token';
    });
    mountRoutes(this.app, this.#deps());
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.world.remove();
  }

  send(method: 'GET' | 'POST' | 'PUT', url: string, payload: unknown = '') {
    const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
    return this.app.inject({
      method,
      url,
      ...(method !== 'GET' && { payload: text, headers: { 'content-type': 'application/json' } }),
    });
  }

  #deps(): Deps {
    const { engine, runtime, signer } = this.world;
    const { registers } = engine;
    const verifier = createVerifier(nodeEd25519());
    const self = this.#self();
    return {
      ...self,
      operatorApi: {
        ...self,
        identity: {
          validatorId: 'validator-0',
          publicKey: signer.key.publicKey,
          algorithm: 'ED25519',
          endpoint: '127.0.0.1:5000',
        },
        budget: engine.budget,
        drain: engine.drain,
        operational: (registerId) => engine.peering.operational(registerId),
      },
      validatorId: 'validator-0',
      nowMs: () => Date.now(),
      admission: engine.admission,
      forward: (...args) => this.beyond.forward(...args),
      onFault: undefined,
      directory: {
        all: async () =>
          this.announced.map((validatorId) => ({
            validatorId,
            endpoint: 'other:5000',
            version: '1',
            announcedAtMs: 1,
          })),
      },
      peerClients: this.#peerClients(),
      clock: runtime.clock,
      verifier,
      verify: async (items) => items.map((item) => verifier.verifyDigest(item)),
      findState: async (registerId) => registers.get(registerId)?.state,
      configuration: this.#configuration(),
      checks: [{ name: 'a check', check: () => this.#assertWell() }],
      isSubscribed: () => this.subscriptions.isSubscribed(),
      listSubscribed: (_organizationId, registerIds) => this.#listSubscribed(registerIds),
    };
  }

  #self(): LocalValidator {
    const { engine } = this.world;
    const { registers } = engine;
    return createLocalValidator({
      validatorId: 'validator-0',
      version: '1',
      startedAtMs: Date.now(),
      allRegisters: () => registers.all(),
      getRegister: (registerId) => registers.get(registerId),
      findRegister: (registerId) => registers.find(registerId),
      findSet: async (registerId) =>
        registerId === otherRegister ? { members: ['validator-1', 'validator-2'], quorum: 2 } : undefined,
      setMode: (registerId, mode) => engine.setMode(registerId, mode),
      heard: () => [],
      conditions: () => [],
      volumeGap: () => undefined,
      evidence: (registerId) => engine.peering.evidence(registerId),
      findRules: (registerId) => this.beyond.findRules(registerId),
    });
  }

  #peerClients(): Deps['peerClients'] {
    const alone = () => Promise.reject(new AppError('unavailable', 'UNAVAILABLE', 'no other validator'));
    return {
      report: (...args) => (this.peerClients.report ?? alone)(...args),
      act: (...args) => (this.peerClients.act ?? alone)(...args),
      evidence: (...args) => (this.peerClients.evidence ?? alone)(...args),
      listWaiting: (...args) => (this.peerClients.listWaiting ?? alone)(...args),
      buildDocket: (...args) => (this.peerClients.buildDocket ?? alone)(...args),
      configure: (...args) => (this.peerClients.configure ?? alone)(...args),
    };
  }

  #configuration(): Configuration {
    const { engine, runtime } = this.world;
    return new Configuration({
      buildLimits: engine.buildLimits,
      bounds: engine.bounds,
      verifying: { workers: 2, limit: (threads) => this.controlled.push(['threads', threads]) },
      rate: { perMinute: 600, limit: (perMinute) => this.controlled.push(['perMinute', perMinute]) },
      log: runtime.log,
    });
  }

  async #listSubscribed(registerIds: readonly string[]): Promise<readonly string[]> {
    this.listed.push(registerIds);
    try {
      return (await this.subscriptions.isSubscribed()) ? registerIds : [];
    } catch (error) {
      if (isAppError(error, 'not_found')) return [];
      throw error;
    }
  }

  #assertWell(): void {
    if (!this.health.isWell) throw new Error('unwell');
  }
}

/** A register that other validators have and this one does not. */
export const otherRegister = 'ab'.repeat(16);

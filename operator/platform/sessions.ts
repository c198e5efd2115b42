import { createServiceTokens } from '#kit/auth/auth.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { Installation } from '../api/installation.ts';
import { OPERATOR_CLIENT_ID } from '../api/names.ts';
import { RequeueError } from '../api/requeue-error.ts';

/** Identity, token and guard for the clients of an installation's services. */
export interface ServiceSession {
  readonly installation: Installation;
  readonly workload: Workload;
  /** The operator's own service token. */
  readonly token: () => Promise<string>;
  /** Runtime with the name of the installation. */
  readonly runtime: Runtime;
  /**
   * Called right before each call that changes something, because only the leader may change anything.
   * @returns milliseconds that the call may take
   * @throws NotLeader
   */
  readonly guard: () => number;
}

export interface ServiceSessions {
  /**
   * The session for the services of an installation. It is the same object while the description is unchanged, so that
   * clients can be cached by it.
   * @throws AppError unavailable while the operator has no identity; RequeueError for a foreign trust domain
   */
  of(installation: Installation): Promise<ServiceSession>;
  stop(): void;
}

interface ServiceSessionsOptions {
  readonly runtime: Runtime;
  readonly guard: () => number;
  /** Obtains the operator's identity in an installation; called again after a failure. */
  readonly connect: (installation: Installation) => Promise<Workload>;
}

/** One identity and one token per installation; with SPIRE one identity for the whole trust domain. */
export function createServiceSessions(options: ServiceSessionsOptions): ServiceSessions {
  const { runtime, guard, connect } = options;
  const sessions = new WeakMap<Installation, ServiceSession>();
  /** Tokens outlive unrelated changes of the description. */
  const tokens = new WeakMap<Workload, Map<string, ServiceSession['token']>>();
  const identities = new Map<string, Promise<Workload>>();
  const expiry = runtime.telemetry.gauge(
    'identity_expiry_timestamp_seconds',
    'When the SVID in hand ends, seconds since the epoch; the namespace is empty with SPIRE',
    ['namespace'],
  );
  let isStopped = false;

  const open = async (installation: Installation, namespace: string): Promise<Workload> => {
    const identity = await connect(installation);
    const record = () => expiry.set({ namespace }, identity.current().expiresAtMs / 1_000);
    record();
    identity.onRotate(record);
    return identity;
  };

  const workload = (installation: Installation): Promise<Workload> => {
    const key = installation.identity.provider === 'spire' ? '' : installation.namespace;
    const opening =
      identities.get(key) ??
      open(installation, key).catch((error: unknown) => {
        identities.delete(key);
        throw error;
      });
    identities.set(key, opening);
    return opening;
  };

  const tokenOf = (identity: Workload, { endpoints }: Installation): ServiceSession['token'] => {
    const { host, port } = endpoints.tenant.mtls;
    const held = tokens.get(identity) ?? new Map<string, ServiceSession['token']>();
    tokens.set(identity, held);
    const key = `${host}:${port}`;
    const { clock, log } = runtime;
    const token =
      held.get(key) ??
      createServiceTokens({
        workload: identity,
        endpoint: endpoints.tenant.mtls,
        clientId: OPERATOR_CLIENT_ID,
        clock,
        log,
      });
    held.set(key, token);
    return token;
  };

  const make = (installation: Installation, identity: Workload): ServiceSession => {
    const { installation: name } = installation;
    if (identity.trustDomain !== name) {
      const message = `The operator has an identity in trust domain ${identity.trustDomain}, but not in ${name}; with SPIRE it serves one trust domain`;
      throw new RequeueError('DependencyNotReady', message, { state: 'stalled' });
    }
    return {
      installation,
      workload: identity,
      token: tokenOf(identity, installation),
      guard,
      runtime: { ...runtime, installation: name },
    };
  };

  return {
    of: async (installation) => {
      const identity = await workload(installation);
      const session = sessions.get(installation) ?? make(installation, identity);
      if (!isStopped) sessions.set(installation, session);
      return session;
    },
    stop: () => {
      isStopped = true;
      for (const opening of identities.values())
        void opening.then((identity) => identity.stop()).catch(() => undefined);
    },
  };
}

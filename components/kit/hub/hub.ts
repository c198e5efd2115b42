/**
 * Real-time hubs: the SignalR hub protocol (JSON, version 1) over WebSockets, server-sent events and long polling.
 *
 * A component declares its hub and mounts it:
 *
 * ```ts
 * const hub = await openHub(
 *   {
 *     path: '/hubs/register',
 *     subscriptions: [
 *       {
 *         subscribe: 'SubscribeToRegister',        // (registerId, since?) -> {replayed, complete}
 *         unsubscribe: 'UnsubscribeFromRegister',  // (registerId) -> null
 *         groupOf: (registerId) => `register:${registerId}`,   // undefined: the argument is malformed
 *         authorityOf: (caller) => caller.organizationId ?? '',  // callers with equal texts are judged alike
 *         judge: async (caller, registerId) => { ... },        // throws an AppError where the caller may not
 *       },
 *     ],
 *     groupsOf: (caller) => [`tenant:platform-user:${caller.platformUserId}`],  // joined on connect; optional
 *     log: {
 *       db: database.read,                  // its outbox, with `hubsMigration` among the migrations
 *       subject: SUBJECTS.registerEvents,   // wake signal
 *       signalsOf: async (events, isHeld) => [...],  // rows of the outbox -> signals, in their order
 *       filterOf: (group) => ({ key }),     // which rows a replay of the group reads
 *     },
 *   },
 *   { runtime, bus, authenticator, workload },   // authenticator of openSession or createAuthenticator
 * );
 * // compose: `stopping: () => hub.stop()` in createService, and cleanup.add('hub', () => hub.stop())
 * // http.ts: mountHub(app, '/hubs/register', () => deps.hub)
 * ```
 *
 * A hub of methods (`openMethodHub`) has no log. Its methods have arguments, results and streams of results, and events
 * for the connection that called:
 *
 * ```ts
 * hubMethod({
 *   name: 'SendMessage',
 *   parameters: 'sessionId, message',
 *   arguments: z.tuple([z.uuid(), z.string()]),
 *   isStreamed: true,                       // may also be invoked as a stream
 *   run: async ({ client, stream }, [sessionId, message]) => {
 *     client.sendEvent('ReceiveChunk', ['...']);   // to this connection
 *     stream?.send('...');                         // a result of a stream
 *     client.ended;                                // AbortSignal: the connection has ended
 *     return null;
 *   },
 * });
 * ```
 *
 * Policy of all its routes is RequirePlatformUser: services have no hubs. Signals are delivered at least once and in
 * the order of the outbox. A replay (`since`) and the live signals have no gap between them. One replay of a user runs at a
 * time; further ones wait.
 */
import type { Migration } from '#kit/db/db.ts';
import type { App } from '#kit/http/http.ts';
import type { HubDeclaration, HubParts, MethodHubDeclaration } from './declaration.ts';
import { Following } from './following.ts';
import { type HubLimits, hubLimits } from './limits.ts';
import { logSource } from './log.ts';
import { type HubMethod, type MethodOptions, Methods, hubMethod as methodOf } from './methods.ts';
import { mountHubRoutes } from './routes.ts';
import { HubServer } from './server.ts';
import { loadHubKey, hubsMigration as migrationOf } from './store.ts';

export type { HubClient } from './calls.ts';
export type { HubDeclaration, MethodHubDeclaration } from './declaration.ts';
export type { HubLimits } from './limits.ts';
export type { HubMethod } from './methods.ts';
export type { Signal } from './signal.ts';
export type { Subscription } from './subscriptions.ts';

/** A running hub. */
export interface Hub {
  readonly server: HubServer;
  /** Closes every connection, whose clients connect to another replica, and stops following the log. */
  stop(): Promise<void>;
}

/** Opens a hub; resolves when it follows the log. Errors: those of the database, internal/HUB_KEY_MISSING. */
export async function openHub<DB>(declaration: HubDeclaration<DB>, parts: HubParts): Promise<Hub> {
  const limits = { ...hubLimits, ...parts.limits };
  const key = await loadHubKey(declaration.log.db);
  const { path, subscriptions, groupsOf } = declaration;
  const { runtime, bus, timers } = parts;
  const behaviour = new Following({
    ...{ subscriptions, groupsOf, limits, bus, timers },
    source: logSource(declaration.log),
    log: runtime.log,
    nowMs: () => runtime.clock.nowMs(),
  });
  return await startServer(new HubServer({ ...parts, path, behaviour, limits, key }));
}

/** Opens a hub of methods. Errors: those of the database, internal/HUB_KEY_MISSING. */
export async function openMethodHub<DB>(
  declaration: MethodHubDeclaration<DB>,
  parts: Omit<HubParts, 'bus'>,
): Promise<Hub> {
  const limits = { ...hubLimits, ...declaration.limits, ...parts.limits };
  const key = await loadHubKey(declaration.db);
  const behaviour = new Methods(declaration);
  const { path } = declaration;
  return await startServer(new HubServer({ ...parts, path, behaviour, limits, key }));
}

async function startServer(server: HubServer): Promise<Hub> {
  await server.start();
  return { server, stop: () => server.stop() };
}

/** Declares a method of a hub of methods. */
export function hubMethod<Args extends readonly unknown[]>(options: MethodOptions<Args>): HubMethod {
  return methodOf(options);
}

/**
 * Mounts `POST {path}/negotiate`, and GET, POST and DELETE of the path. `hub` is called by handlers only; `limits` are
 * those that the hub declares.
 */
export function mountHub(
  app: App,
  path: `/hubs/${string}`,
  hub: () => Hub,
  { messageBytes = hubLimits.messageBytes }: Partial<HubLimits> = {},
): void {
  mountHubRoutes(app, { path, messageBytes }, () => hub().server);
}

/**
 * The migration that creates the key of connection tokens and the index of replays; place it in the component's list
 * under a name of its order, behind the outbox.
 */
export function hubsMigration(name: string): Migration {
  return migrationOf(name);
}

import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import { systemClock } from '#kit/clock/clock.ts';
import { openDatabase } from '#kit/db/db.ts';
import { outboxMigration } from '#kit/db/outbox.ts';
import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import { hubsMigration, mountHub, openHub } from '#kit/hub/hub.ts';
import { createLogger } from '#kit/log/log.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';

/**
 * A hub of kit/hub that follows the event log of a schema, in a process of its own: what the register service is to its
 * clients, without registers. A row is one signal for the room that its key names. The access token of a client is its
 * user. Settings: {databaseUrl, schema}. The message `wake` is the wake signal of the log.
 */

const { databaseUrl, schema } = z
  .object({ databaseUrl: z.string(), schema: z.string() })
  .parse(JSON.parse(process.argv[2] ?? '{}'));
const path = '/hubs/rooms';
const rowSchema = z.object({ txId: z.string(), traceId: z.string() });
const person = { kind: 'user', tier: 'platform', clientId: 'bench', roles: ['User'], scopes: [] } as const;

const service = 'service-rooms';
const runtime = {
  service,
  installation: 'bench',
  log: createLogger({ service, level: 'error' }),
  clock: systemClock(),
  telemetry: createTelemetry({ service }),
};
const { log, telemetry } = runtime;
const db = await openDatabase<Record<never, never>>({
  url: databaseUrl,
  schema,
  log,
  telemetry,
  migrations: [outboxMigration('0001-outbox'), hubsMigration('0002-hubs')],
});

const wakes = new Set<() => void>();
process.on('message', () => {
  for (const wake of wakes) wake();
});

const hub = await openHub(
  {
    path,
    subscriptions: [
      {
        subscribe: 'Enter',
        unsubscribe: 'Leave',
        groupOf: (name) => `room:${name}`,
        authorityOf: ({ subject }) => subject,
        judge: async () => undefined,
      },
    ],
    log: {
      db: db.read,
      subject: 'rooms',
      signalsOf: async (events) =>
        events.map(({ kind, key, data, createdAt }) => {
          const { txId, traceId } = rowSchema.parse(data);
          return {
            target: kind,
            arguments: [key, txId, createdAt.toISOString(), traceId],
            groups: [`room:${key}`],
          };
        }),
      filterOf: (group) => ({ key: group.replace('room:', '') }),
    },
  },
  {
    runtime,
    bus: {
      subscribe: (_subject, wake) => {
        wakes.add(wake);
        return () => wakes.delete(wake);
      },
    },
    authenticator: { assertCurrent: () => undefined },
  },
);
const app = createHttpServer({ runtime, title: 'rooms' });
authPlugin(app, {
  authenticate: async (token): Promise<Caller> => ({
    ...person,
    subject: token,
    platformUserId: token,
    tokenId: token,
    issuedAtMs: 0,
    expiresAtMs: Date.UTC(2100, 0),
    canSignSystem: false,
    claims: {} as Caller['claims'],
  }),
});
mountHub(app, path, () => hub);
process.send?.(String(await listenHttp(app, { host: '127.0.0.1', port: 0 })));
// The benchmark may end first.
process.once('disconnect', () => process.exit(0));

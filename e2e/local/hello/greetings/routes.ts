import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import type { HelloDatabase } from '../database/schema.ts';
import { refusal, refusals } from '../errors.ts';
import { findGreeting, putGreeting } from './store.ts';

export interface GreetingDeps {
  readonly db: Database<HelloDatabase>;
}

const greetingSchema = z.object({ greeting: readableName });
const route = {
  path: '/api/greetings/mine',
  tag: 'Greetings',
  policy: 'RequirePlatformUser',
  rateLimit: 'Api',
} as const;

export function mountGreetingRoutes(app: App, deps: GreetingDeps): void {
  addRoute(app, {
    ...route,
    method: 'PUT',
    operationId: 'storeGreeting',
    summary: 'Stores the greeting of the caller',
    body: { schema: greetingSchema, example: { greeting: 'Good morning' } },
    answers: { 204: empty('The greeting is stored.') },
    refusals: [],
    handle: ({ caller, body }) => deps.db.transact((tx) => putGreeting(tx, caller.subject, body.greeting)),
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    operationId: 'getGreeting',
    summary: 'The greeting of the caller',
    answers: { 200: json('The greeting.', greetingSchema) },
    refusals: refusals('GREETING_NOT_FOUND'),
    handle: async ({ caller }) => {
      const greeting = await findGreeting(deps.db.read, caller.subject);
      if (greeting === undefined) throw refusal('GREETING_NOT_FOUND');
      return { greeting };
    },
  });
}

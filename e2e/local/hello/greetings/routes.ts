import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, callerOf, emptyAnswer } from '#kit/http/http.ts';
import type { HelloDatabase } from '../database/schema.ts';
import { findGreeting, putGreeting } from './store.ts';

export interface GreetingDeps {
  readonly db: Database<HelloDatabase>;
}

const greetingSchema = z.object({ greeting: readableName });
const config = { policy: 'RequirePlatformUser', rateLimit: 'Api' } as const;
const tags = ['Greetings'];

export function mountGreetingRoutes(app: App, deps: GreetingDeps): void {
  app.put(
    '/api/greetings/mine',
    {
      config,
      schema: {
        operationId: 'storeGreeting',
        tags,
        summary: 'Stores the greeting of the caller',
        body: greetingSchema,
        response: emptyAnswer('The greeting is stored.'),
      },
    },
    async (request, reply) => {
      const { subject } = callerOf(request);
      await deps.db.transact((tx) => putGreeting(tx, subject, request.body.greeting));
      return reply.code(204).send();
    },
  );
  app.get(
    '/api/greetings/mine',
    {
      config,
      schema: {
        operationId: 'getGreeting',
        tags,
        summary: 'The greeting of the caller',
        response: { 200: greetingSchema },
      },
    },
    async (request) => {
      const greeting = await findGreeting(deps.db.read, callerOf(request).subject);
      if (greeting === undefined) {
        throw new AppError('not_found', 'GREETING_NOT_FOUND', 'the caller has no greeting');
      }
      return { greeting };
    },
  );
}

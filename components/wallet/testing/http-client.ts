import { expect } from 'vitest';
import type { Caller } from '#core/identity/claims.ts';
import { type Replica, routesFor } from './fixture.ts';

export interface CallOptions {
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls the routes of a replica as one of its callers; `target` is a method and a path. */
export function createHttpClient(replica: Replica) {
  const callers = new Map<string, Caller>();
  const app = routesFor(replica, callers);
  const call = async (who: string, target: string, options: CallOptions = {}) => {
    const [method, url = ''] = target.split(' ');
    const response = await app.inject({
      method: method as 'GET' | 'POST' | 'PUT' | 'DELETE',
      url,
      headers: { authorization: who, ...options.headers },
      ...(options.body !== undefined && { payload: options.body }),
    });
    const body = response.body === '' ? undefined : response.json();
    return { status: response.statusCode, body, headers: response.headers };
  };
  return {
    /** `authorization` text to caller */
    callers,
    call,
    /** Creates a wallet; returns the body of the response. */
    made: async (who: string, keyType = 'ED25519', more: object = {}) => {
      const body = { title: 'Main', keyType, ...more };
      const created = await call(who, 'POST /api/wallets', { body });
      expect(created.status).toBe(201);
      return created.body;
    },
    close: () => app.close(),
  };
}

export type HttpClient = ReturnType<typeof createHttpClient>;

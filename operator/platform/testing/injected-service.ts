import { refusalOf, unreadable } from '../refusals.ts';
import type { Service, ServiceRequest } from '../transport.ts';

export interface InjectedAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** A service without sockets, whose routes are called directly. */
export function injectedService(call: (request: ServiceRequest) => Promise<InjectedAnswer>): Service {
  return {
    call: async (request, schema) => {
      const { status, body } = await call(request);
      if (status >= 300) throw refusalOf('the service', request, { status, body, headers: {} });
      const parsed = schema.safeParse(body);
      if (!parsed.success) throw unreadable('the service', request, parsed.error);
      return parsed.data;
    },
    close: () => undefined,
  };
}

import type { Dispatcher } from 'undici';
import type { AppError } from '#core/errors/errors.ts';
import { gatewayError } from './errors.ts';
import type { Upstream, Upstreams } from './forwarding/upstreams.ts';
import type { Probe } from './health/health.ts';
import type { FetchDocument } from './openapi/documents.ts';

/** A service makes its document at the first request; in local mode all of them do so in one process. */
const documentTimeoutMs = 10_000;
const documentLimitBytes = 8 * 1024 * 1024;

/**
 * A service is up when it answers over mutual TLS with anything but a 5xx: a service that is not ready stops its
 * listener.
 */
export function probeWith(upstreams: Upstreams): Probe {
  return async (service, signal) => {
    const { statusCode, body } = await ask(found(upstreams, service), { path: '/health', signal });
    await body.dump();
    if (statusCode >= 500) throw unavailable(service);
  };
}

/** GET from the first endpoint of a service that can be reached. */
async function ask(
  upstream: Upstream,
  request: { readonly path: string; readonly signal: AbortSignal },
): Promise<Dispatcher.ResponseData> {
  for (let left = upstream.size; ; left -= 1) {
    const target = upstream.current();
    try {
      return await target.pool().request({ ...request, method: 'GET' });
    } catch (error) {
      upstream.leave(target);
      if (left <= 1 || request.signal.aborted) throw error;
    }
  }
}

/** Reads `/openapi.json` of a service; `own` returns the gateway's. */
export function fetchFrom(upstreams: Upstreams, own: () => Promise<unknown>): FetchDocument {
  return async (service) => {
    if (service === 'gateway') return own();
    const { statusCode, body } = await ask(found(upstreams, service), {
      path: '/openapi.json',
      signal: AbortSignal.timeout(documentTimeoutMs),
    });
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    for await (const chunk of body) {
      const bytes = Buffer.from(chunk);
      sizeBytes += bytes.length;
      if (sizeBytes > documentLimitBytes) throw unavailable(service);
      chunks.push(bytes);
    }
    if (statusCode !== 200) throw unavailable(service);
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  };
}

function found(upstreams: Upstreams, service: string): Upstream {
  const upstream = upstreams.find(service);
  if (upstream === undefined) throw unavailable(service);
  return upstream;
}

function unavailable(service: string): AppError {
  return gatewayError('SERVICE_UNAVAILABLE', `the ${service} service does not answer`);
}

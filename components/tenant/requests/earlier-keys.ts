import type { Idempotency, RepeatableRequest } from '#kit/db/idempotency.ts';

type FindAnswer = (request: RepeatableRequest) => Promise<string | undefined>;

/**
 * Honours keys that an earlier release stored within the last day: under the caller, the method and the path, with the
 * body of the answer alone.
 */
export function honourEarlierKeys(idempotency: Idempotency, find: FindAnswer): Idempotency {
  return {
    async once(request, act, isKept) {
      const [operationId, caller = '', path = ''] = request.scope;
      const { key, body } = request;
      const earlier = await find({
        key,
        scope: [caller, 'POST', path],
        body: [JSON.stringify(body ?? null)],
      });
      if (earlier === undefined) return idempotency.once(request, act, isKept);
      const created: { readonly id: string } = JSON.parse(earlier);
      const headers = operationId === 'createOrganization' ? { location: `${path}/${created.id}` } : {};
      return JSON.parse(JSON.stringify({ status: 201, body: created, headers }));
    },
  };
}

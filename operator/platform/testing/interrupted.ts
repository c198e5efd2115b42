import { AppError } from '#core/errors/errors.ts';

/** Fault of one call: the request is lost before it is carried out, or the response afterwards. */
export type Interruption = 'request' | 'response' | undefined;

/** At once, or after the timeout of a silent service. */
export type Interrupting = Interruption | Promise<Interruption>;

/** The same port with interrupted calls, of which the caller does not know whether they were carried out. */
export function withInterruptions<Port extends object>(
  port: Port,
  when: (call: string) => Interrupting,
): Port {
  return new Proxy(port, {
    get: (target, name, receiver) => {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      return async (...given: readonly unknown[]) => {
        const interruption = await when(name);
        if (interruption === 'request') throw broken(name);
        const answer: unknown = await Reflect.apply(member, target, given);
        if (interruption === 'response') throw broken(name);
        return answer;
      };
    },
  });
}

function broken(name: string): AppError {
  return new AppError('unavailable', 'SERVICE_UNREACHABLE', `the connection broke during ${name}`);
}

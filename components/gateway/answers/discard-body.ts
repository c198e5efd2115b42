import type { IncomingMessage } from 'node:http';

/** Bounds on discarding an unwanted body: total size, and silence. */
const discardLimitBytes = 64 * 1024 * 1024;
const discardMs = 10_000;
const discardSilenceMs = 1000;

/**
 * Discards the rest of a body, so that a client which writes everything before it reads does not lose the answer to a
 * reset connection. Calls back once: at the end of the body, or when a bound is exceeded.
 */
export function discardBody(request: IncomingMessage, done: () => void): void {
  if (request.complete || request.destroyed) {
    done();
    return;
  }
  let seenBytes = 0;
  let pending: (() => void) | undefined = done;
  const finish = () => {
    clearTimeout(total);
    clearTimeout(silence);
    pending?.();
    pending = undefined;
  };
  const total = setTimeout(finish, discardMs);
  const silence = setTimeout(finish, discardSilenceMs);
  request.on('data', (chunk: Buffer) => {
    seenBytes += chunk.length;
    if (seenBytes > discardLimitBytes) finish();
    else if (pending !== undefined) silence.refresh();
  });
  request.on('error', finish);
  request.once('end', finish);
  request.once('close', finish);
  request.resume();
}

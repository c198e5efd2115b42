import { AppError } from '#core/errors/errors.ts';

/** The hub has no such method. */
export function unknownMethod(): AppError {
  return new AppError('invalid', 'HUB_METHOD_UNKNOWN', 'Method not found.');
}

/** The client wants the results of a method one by one, which has one. */
export function notStreamed(name: string): AppError {
  return new AppError('invalid', 'HUB_METHOD_NOT_STREAMED', `${name} does not stream.`);
}

/** @param signature the method with its arguments, `Name(first, second?)` */
export function wrongArguments(signature: string): AppError {
  return new AppError('invalid', 'INVALID_ARGUMENTS', `Invalid arguments: expected ${signature}.`);
}

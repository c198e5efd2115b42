import multipart from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { App } from '#kit/http/http.ts';

/** Lets routes take one file with text fields (RFC 7578) beside JSON. */
export interface Uploads {
  /** The fields of a form become the body; must be called before the routes of the scope are added. */
  accept(scope: App): void;
  /** The file of a form; undefined for JSON. */
  fileOf(request: FastifyRequest): Buffer | undefined;
}

const maxFields = 8;
const maxFieldBytes = 4_096;

/** @param maxFileBytes a larger file answers 413 */
export function createUploads(maxFileBytes: number): Uploads {
  const files = new WeakMap<FastifyRequest, Buffer>();
  const limits = {
    fileSize: maxFileBytes,
    files: 1,
    fields: maxFields,
    parts: maxFields + 1,
    fieldSize: maxFieldBytes,
    fieldNameSize: 64,
    headerPairs: 20,
  };
  return {
    accept(scope) {
      scope.register(multipart, { limits });
      scope.addHook('preValidation', async (request) => {
        if (!request.isMultipart()) return;
        const { file, fields } = await readForm(request);
        if (file !== undefined) files.set(request, file);
        request.body = fields;
      });
    },
    fileOf: (request) => files.get(request),
  };
}

interface Form {
  readonly file: Buffer | undefined;
  readonly fields: Readonly<Record<string, unknown>>;
}

async function readForm(request: FastifyRequest): Promise<Form> {
  try {
    return await readParts(request);
  } catch (error) {
    if (error instanceof AppError || statusOf(error) === 413) throw error;
    throw badForm('The form is malformed.');
  }
}

async function readParts(request: FastifyRequest): Promise<Form> {
  const fields = new Map<string, unknown>();
  let file: Buffer | undefined;
  for await (const part of request.parts()) {
    const { fieldname: name } = part;
    if (fields.has(name)) throw badForm('A field of the form occurs twice.');
    if (part.type === 'file') {
      if (name !== 'file') throw badForm('The file of the form is not named file.');
      file = await part.toBuffer();
    } else {
      if (part.valueTruncated || part.fieldnameTruncated) throw badForm('A field of the form is too long.');
      fields.set(name, part.value);
    }
  }
  return { file, fields: Object.fromEntries(fields) };
}

function badForm(message: string): AppError {
  return new AppError('invalid', genericCode('invalid'), message);
}

function statusOf(error: unknown): unknown {
  return error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
}

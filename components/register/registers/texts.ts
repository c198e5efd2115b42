import { z } from 'zod';
import { readableLine, readableName, readableText } from '#core/encoding/readable.ts';

/** What a request calls a register and says of it. What is sealed already is read as it stands. */
export const titleText = readableName.min(1).max(128);
export const descriptionText = readableText.max(2048);
export const metadataMap = z
  .record(readableLine.min(1).max(64), readableText.max(512))
  .refine((value) => Object.keys(value).length <= 32, 'at most 32 members');

/** Why somebody asks for a change of a register, or votes as they do. */
export const reasonText = readableText.max(500);

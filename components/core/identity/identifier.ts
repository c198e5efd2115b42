import { z } from 'zod';

/**
 * The id of an organisation, a person, a user, a wallet or a custom resource: 8-4-4-4-12 hexadecimal digits in any
 * case; the output has lower case, as ids are stored.
 *
 * Ids are UUIDs in form (RFC 9562, section 4). Version and variant are not judged, because the ids that every
 * installation starts with have none. OpenAPI documents name the format `uuid` alone: parsers of that format take any
 * version, and clients that are generated from the format hold a UUID value, to which no pattern applies.
 */
export const identifier = z.guid().toLowerCase();

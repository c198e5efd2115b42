/** The grant of an offer (OpenID4VCI 1.0, section 3.5). */
export const PRE_AUTHORIZED_GRANT = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';

/** Credentials that one offer gives, in one request or several. */
export const batchSize = 10;

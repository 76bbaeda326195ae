/** Makes the desk's pages live. Everything on them can be read without it. */

import { writeTimes } from './times';

writeTimes(document);

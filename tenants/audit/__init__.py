"""The audit: one redacted record for every answer, in an append-only chain for each tenant.

A record has two parts. The **link** holds the turn's id, time, outcome and a digest, and no personal data. The
**content** (question, answer and its sources) is stored separately and can be erased. The digest covers the content
and a random salt that is erased with it: the link alone does not reveal the content, not even to guessing, and the
chain still verifies.

Every link's hash covers its own fields and the hash before it: a record that is changed, removed, inserted or moved
breaks the chain (`tenants.audit.chain`). Content may be missing only if a later link of the same chain records its
erasure, and the first records only if a link records their pruning. An attacker with write access to the database
could recompute the whole chain, but not a copy of the newest hash that is kept elsewhere: `opora audit verify` prints
that hash, and compares a given one with the chain.

Records reach the database through the **spool** (`tenants.audit.spool`): a record is written to a file there before its
answer is sent, so a process killed at any moment loses none; a turn may be recorded although its answer was never
sent. One thread moves records from the spool to the database and syncs them to disk, within `recorder.PACE` seconds
while the database responds; a power failure can lose that much. A slow or unavailable database makes the spool grow,
but no request waits.
"""

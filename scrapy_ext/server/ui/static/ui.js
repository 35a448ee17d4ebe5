"use strict";
// What pages do beyond links and forms. Everything that they need works without it.

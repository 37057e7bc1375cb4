// The version, in its only place: the build and the installed package read these three numbers from here.
#pragma once

#define CFP_VERSION_MAJOR 0
#define CFP_VERSION_MINOR 1
#define CFP_VERSION_PATCH 0
